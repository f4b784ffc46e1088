import type { Loan } from "@nodeyard/sliver-protocol";
import { computeLoans, type State, withLocal } from "../../core/index.ts";
import type { Context, TargetMethod } from "../context.ts";
import { FAILED_CALL, Fault } from "../fault.ts";

const getRspec: TargetMethod = {
  name: "GetRSpec",
  doc: "GetRSpec(sliver_name): return the sliver's resource allocation, without loans.",
  arity: 1,
  target: true,
  run: ({ dialect }, record) => dialect.rspec(record.rspec, record),
};

const getEffectiveRspec: TargetMethod = {
  name: "GetEffectiveRSpec",
  doc: "GetEffectiveRSpec(sliver_name): return the sliver's resource allocation, with loans.",
  arity: 1,
  target: true,
  run: (context, record) => {
    const { effective } = loansNow(context);
    return context.dialect.rspec(effective.get(record.name) ?? record.rspec, record);
  },
};

const getLoans: TargetMethod = {
  name: "GetLoans",
  doc: "GetLoans(sliver_name): return the loans that the sliver gives, honoured or not.",
  arity: 1,
  target: true,
  run: (context, record) => context.dialect.writeLoans(loansNow(context).loanStatuses.get(record.name) ?? []),
};

const setLoans: TargetMethod = {
  name: "SetLoans",
  doc: "SetLoans(sliver_name, loans): replace the sliver's list of loans, [recipient, resource, amount] each.",
  arity: 2,
  target: true,
  run: async (context, { name, generation }, [value]) => {
    const { dialect, caller, manager } = context;
    const loans = dialect.readLoans(value);
    await manager.change((state) => {
      if (state.records.get(name)?.generation !== generation)
        throw new Fault(FAILED_CALL, `${name} was just removed`);
      return { state: withLocal(state, name, { loans: bound(loans, state, caller.account) }), result: 1 };
    });
    return dialect.loansSet(loansNow(context).loanStatuses.get(name) ?? []);
  },
};

export const RESOURCE_METHODS: readonly TargetMethod[] = [getEffectiveRspec, getLoans, getRspec, setLoans];

/**
 * Where generations are known, a loan is to the one that has the name now and ends with it. In documents of PLC
 * there is only the name, and a loan holds again when it comes back.
 */
function bound(loans: readonly Loan[], state: State, by: string): Loan[] {
  return loans.map((loan) => {
    const generation = loan.generation ?? state.records.get(loan.to)?.generation ?? 0;
    return generation === 0 ? { ...loan, by } : { ...loan, generation, by };
  });
}

/** From what is stored, so that an answer right after SetLoans is right. */
function loansNow({ manager }: Context): ReturnType<typeof computeLoans> {
  return computeLoans(manager.state.records, manager.options.machine.policy.minimums, manager.now);
}
