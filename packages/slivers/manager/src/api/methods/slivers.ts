import { deadline, messageOf, NodeyardError } from "@nodeyard/runtime";
import { IMAGE, type Loan } from "@nodeyard/sliver-protocol";
import { computeLoans, shownToLender } from "../../core/loans.ts";
import { isTrusted } from "../../core/permit.ts";
import { type SliverRecord, type State, withLocal } from "../../core/record.ts";
import { type BackEnd, CACHE_CHANGES, type SliverRef } from "../../isolation/contract.ts";
import { IMAGE_NAME } from "../../isolation/storage/edge/archives.ts";
import type { Manager } from "../../manager/manager.ts";
import { converged } from "../../manager/waits.ts";
import { type Context, FAILED_CALL, Fault, type Method, placeOf, wrongArgument } from "../method.ts";

/** How long a call waits for the machine, milliseconds. After that the change is still applied. */
const PATIENCE = 110_000;

/** Most loans of a sliver's own list, because each change of any sliver rewrites all lists. Documents may have more. */
const MAX_OWN_LOANS = 32;

/**
 * Methods on one sliver, and on the accounts of the node. Those with `about` are called with the record of the sliver that their first
 * argument names, when the caller may call them on it; those with `run` check for themselves whom they answer.
 */
export const SLIVER_METHODS = {
  Create: {
    since: "r0",
    params: ["sliver_name"],
    doc: "create a delegated sliver.",
    changes: true,
    about: (context, record) => setDesired(context, record, true),
  },
  Destroy: {
    since: "r0",
    params: ["sliver_name"],
    doc: "destroy a delegated sliver; its record stays.",
    changes: true,
    about: (context, record) => setDesired(context, record, false),
  },
  Start: {
    since: "r0",
    params: ["sliver_name"],
    doc: "start the sliver and run its start scripts.",
    changes: true,
    about: (context, record) => {
      const { incarnation, desired } = record.local;
      // A delegated sliver is started only after Create; one that is on the machine may be started whatever its record says.
      const exists = context.manager.observed.some((one) => one.incarnation === incarnation);
      if (exists || record.instantiation === "plc-instantiated" || desired === true)
        return change(context, record, (state) => withLocal(state, record.name, { stopped: false }));
      if (!context.dialect.strict) return 1;
      throw new Fault(FAILED_CALL, `${record.name} has not been created`);
    },
  },
  Stop: {
    since: "r0",
    params: ["sliver_name"],
    doc: "kill all processes of the sliver.",
    changes: true,
    about: (context, record) =>
      change(context, record, (state) => withLocal(state, record.name, { stopped: true })),
  },
  ReCreate: {
    since: "v2",
    params: ["sliver_name"],
    doc: "stop, destroy, create and start the sliver.",
    changes: true,
    about: (context, record) =>
      change(context, record, (state) => renewed(state, record.name, { desired: true })),
  },
  GetRSpec: {
    since: "r0",
    params: ["sliver_name"],
    doc: "return the sliver's resource allocation, without loans.",
    about: ({ dialect }, record) => dialect.rspec(record.rspec, record),
  },
  GetEffectiveRSpec: {
    since: "r0",
    params: ["sliver_name"],
    doc: "return the sliver's resource allocation, with loans.",
    about: (context, record) => context.dialect.rspec(loansNow(context, record).effective, record),
  },
  GetLoans: {
    since: "r0",
    params: ["sliver_name"],
    doc: "return the loans that the sliver gives, honoured or not.",
    about: (context, record) => context.dialect.writeLoans(loansNow(context, record).loans),
  },
  SetLoans: {
    since: "r0",
    params: ["sliver_name", "loans"],
    doc: "replace the sliver's list of loans, [recipient, resource, amount] each.",
    changes: true,
    about: async (context, record, [value]) => {
      const { dialect, caller, manager } = context;
      const { name, generation } = record;
      const loans = dialect.readLoans(value);
      if (loans.length > MAX_OWN_LOANS && !isTrusted(caller))
        throw wrongArgument(`more than ${MAX_OWN_LOANS} loans`);
      await manager.change((state) => {
        if (state.records.get(name)?.generation !== generation)
          throw new Fault(FAILED_CALL, `${name} was just removed`);
        return { state: withLocal(state, name, { loans: bound(loans, state, caller.account) }), result: 1 };
      }, placeOf(context));
      return dialect.loansSet(loansNow(context, record).loans);
    },
  },
  GetRecord: {
    since: "v2",
    params: [],
    doc: "return the caller's own record.",
    run: (context) => {
      const { manager, caller, dialect } = context;
      const record = manager.state.records.get(caller.account);
      if (record === undefined || record.generation !== caller.generation)
        throw wrongArgument(`${caller.account} has no record`);
      const { effective, loans } = loansNow(context, record);
      return dialect.record(record, effective, loans);
    },
  },
  GetXIDs: {
    since: "v2",
    params: [],
    doc: "return a dictionary of sliver names and their numeric user ids.",
    run: ({ manager }) =>
      Object.fromEntries(
        [...manager.state.records.values()].flatMap(({ name, kind, local }) =>
          kind === "sliver" && local.index !== undefined
            ? [[name, manager.options.backEnd.account(local.index).uid]]
            : [],
        ),
      ),
  },
  GetSSHKeys: {
    since: "v2",
    params: [],
    doc: "return a dictionary of account names and their ssh keys.",
    run: ({ manager }) =>
      Object.fromEntries(
        [...manager.state.records.values()].map(({ name, keys }) => [name, keys.join("\n")]),
      ),
  },
  Console: {
    since: "native",
    params: ["sliver_name"],
    doc: "return the end of what the sliver wrote to its console, or null; root and the launcher only.",
    run: async ({ manager }, [name]) => {
      const { backEnd } = manager.options;
      if (backEnd.console === undefined) throw without(backEnd, "console");
      // Null also for a name without a sliver.
      const ref = refOf(manager, name);
      return ref === undefined ? null : await backEnd.console(ref);
    },
  },
  Snapshot: {
    since: "native",
    params: ["sliver_name", "image"],
    doc: "make what the sliver has now an image of that name; root and the launcher only.",
    run: ({ manager }, [name, image]) =>
      work(manager, nameOf(image), async (backEnd, wanted, signal) => {
        if (backEnd.snapshot === undefined) throw without(backEnd, "images");
        const ref = refOf(manager, name);
        if (ref === undefined)
          throw wrongArgument(
            `the first argument must be a sliver that was made, not ${String(name).slice(0, 64)}`,
          );
        await backEnd.snapshot(ref, wanted, signal);
      }),
  },
  ForgetSnapshot: {
    since: "native",
    params: ["image"],
    doc: "take the name from an image that was made of a sliver; it goes with its last copy.",
    run: ({ manager }, [image]) =>
      work(manager, nameOf(image), async (backEnd, wanted, signal) => {
        if (backEnd.forgetSnapshot === undefined) throw without(backEnd, "images");
        await backEnd.forgetSnapshot(wanted, signal);
      }),
  },
  ChangeCache: {
    since: "native",
    params: ["cache", "change"],
    doc: "delete, pin or unpin a cache of the machine; root and the launcher only.",
    run: ({ manager }, [id, change]) => {
      const known = CACHE_CHANGES.find((one) => one === change);
      if (typeof id !== "string" || known === undefined)
        throw wrongArgument(`the arguments must be the id of a cache and one of ${CACHE_CHANGES.join(", ")}`);
      return work(manager, id, async (backEnd, cache, signal) => {
        if (backEnd.changeCache === undefined) throw without(backEnd, "caches");
        await backEnd.changeCache(cache, known, signal);
      });
    },
  },
} satisfies Record<string, Method>;

/** The present incarnation of a sliver; undefined when it has no place on the machine. */
function refOf({ state }: Manager, name: unknown): SliverRef | undefined {
  const { index, incarnation } = (typeof name === "string" && state.records.get(name)?.local) || {};
  return index === undefined || incarnation === undefined ? undefined : { index, incarnation };
}

/** The name of an image. Throws Fault. */
function nameOf(image: unknown): string {
  if (typeof image !== "string" || !IMAGE_NAME.test(image) || !IMAGE.test(image))
    throw wrongArgument("an image's name is 64 lower-case letters, digits and ._- at most");
  return image;
}

function without({ name }: BackEnd, what: string): Fault {
  return new Fault(FAILED_CALL, `slivers of back end ${name} have no ${what}`);
}

/** Work of the back end on what has that name, while the caller waits. */
async function work(
  { options: { backEnd, clock } }: Manager,
  name: string,
  does: (backEnd: BackEnd, name: string, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  using limit = deadline(clock, PATIENCE, () => new Fault(FAILED_CALL, "it took more than 110 seconds"));
  try {
    await does(backEnd, name, limit.signal);
    return 1;
  } catch (error) {
    if (!(error instanceof NodeyardError)) throw error;
    throw new Fault(FAILED_CALL, messageOf(error));
  }
}

/** Create and Destroy are for delegated slivers; for others the old r0 dialect answers success and does nothing. */
function setDesired(context: Context, record: SliverRecord, desired: boolean): unknown {
  if (record.instantiation === "delegated")
    return change(context, record, (state) => desiredState(state, record.name, desired));
  if (!context.dialect.strict) return 1;
  throw new Fault(FAILED_CALL, `Only PLC can ${desired ? "create" : "destroy"} non delegated slivers`);
}

/** Applies Create (`desired`) or Destroy to a delegated sliver. Create after Destroy makes a new incarnation. */
export function desiredState(state: State, name: string, desired: boolean): State {
  const local = state.records.get(name)?.local;
  if (local === undefined || local.desired === desired) return state;
  // The old incarnation may still be ending.
  const again = desired && local.desired === false;
  return again ? renewed(state, name, { desired }) : withLocal(state, name, { desired });
}

/** Gives a record a new incarnation with an index of its own, so that it neither waits for the old one nor sees its data. */
function renewed(state: State, name: string, change: { readonly desired: boolean }): State {
  const record = state.records.get(name);
  if (record === undefined) return state;
  const { loans } = record.local;
  const records = new Map(state.records);
  records.set(name, { ...record, local: { ...change, loans, incarnation: state.nextIncarnation } });
  return { ...state, records, nextIncarnation: state.nextIncarnation + 1 };
}

/**
 * Stores a change of one sliver and, if the dialect does so, waits until the machine has applied it. Another call may have removed or
 * replaced the record before this one gets its turn.
 */
async function change(
  context: Context,
  { name, generation }: SliverRecord,
  next: (state: State) => State,
): Promise<number> {
  const { manager, dialect } = context;
  const incarnation = await manager.change((state) => {
    const now = state.records.get(name);
    if (now?.generation !== generation) throw new Fault(FAILED_CALL, `${name} was just removed`);
    const changed = next(state);
    return { state: changed, result: changed.records.get(name)?.local.incarnation };
  }, placeOf(context));
  if (dialect.waits && incarnation !== undefined) await converged(manager, incarnation, PATIENCE);
  return 1;
}

/**
 * Binds loans to the present generation of the borrower's name, with which they end. Documents of PLC have no generations: there a loan is
 * valid again when the name returns.
 */
function bound(loans: readonly Loan[], state: State, by: string): Loan[] {
  return loans.map((loan) => {
    const generation = loan.generation ?? state.records.get(loan.to)?.generation ?? 0;
    return generation === 0 ? { ...loan, by } : { ...loan, generation, by };
  });
}

/** Computed from the stored state, so that an answer right after SetLoans is correct. */
function loansNow({ manager, caller }: Context, { name, rspec }: SliverRecord) {
  const { minimums } = manager.options.machine.policy;
  const { effective, loanStatuses } = computeLoans(manager.state.records, minimums, manager.now);
  const loans = loanStatuses.get(name) ?? [];
  return { effective: effective.get(name) ?? rspec, loans: isTrusted(caller) ? loans : shownToLender(loans) };
}
