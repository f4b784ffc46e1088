import { type Loan, type LoanStatus, MAX_AMOUNT, NAME, type Rspec } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../../core/index.ts";
import { MAX_WIRE_INT, toWire, type WireProfile } from "../../profiles/index.ts";
import { DENIED, FAILED_CALL, Fault, WRONG_ARGUMENT, wrongArgument } from "../fault.ts";
import type { Dialect } from "./dialect.ts";

/** Longest list of loans. */
const MAX_LOANS = 1000;

/** A dialect of the old manager, from the table of its names and units. */
export function wireDialect(profile: WireProfile): Dialect {
  const isV2 = profile.name === "v2";
  const loanOut = ({ to, resource, amount }: LoanStatus) => {
    const row = profile.resources.find((one) => one.resource === resource);
    return row === undefined ? [] : [[to, row.wire, Math.min(MAX_WIRE_INT, Math.floor(amount / row.scale))]];
  };
  const rspecOut = (rspec: Rspec, record: SliverRecord): Record<string, unknown> => {
    const amounts = toWire(profile, rspec);
    return isV2 ? { ...amounts, ...v2Texts(rspec, record) } : amounts;
  };
  return {
    name: profile.name,
    methods: profile.methods,
    waits: isV2,
    strict: isV2,
    help: (docs) => docs.map(({ name, doc }) => (isV2 ? `**** ${name}\n${doc}\n` : `${doc}\n`)).join(""),
    rspec: rspecOut,
    readLoans: (value) => readTriples(value, profile),
    writeLoans: (loans) => loans.flatMap(loanOut),
    loansSet: () => 1,
    record: (record, effective, loans) => ({
      name: record.name,
      timestamp: Math.min(MAX_WIRE_INT, record.stamp.number),
      type: record.kind === "controller" ? "controller.Controller" : "sliver.VServer",
      instantiation: record.instantiation,
      ...(record.expiresAt === undefined ? {} : { expires: Math.min(MAX_WIRE_INT, record.expiresAt) }),
      ...(record.sliceId === undefined ? {} : { slice_id: record.sliceId }),
      keys: record.keys.join("\n"),
      initscript: record.initscript,
      delegations: record.delegations.map(({ caller }) => caller),
      attributes: record.attributes ?? {},
      rspec: rspecOut(record.rspec, record),
      _rspec: rspecOut(effective, record),
      _loans: loans.flatMap(loanOut),
    }),
    denied: ({ account }) =>
      new Fault(DENIED, isV2 ? `${account}: Permission denied.` : "Permission denied."),
    inner: (fault) => (isV2 ? new Fault(FAILED_CALL, `Error in call: ${innerText(fault)}`) : fault),
  };
}

/** A fault within a call was shown with its number, anything else by its text alone. */
function innerText({ code, message }: Fault): string {
  return code === WRONG_ARGUMENT ? `<Fault ${code}: '${message}'>` : message;
}

/** What the 2.0 line kept as text in an rspec. Capabilities and addresses are shown as they were asked for, never granted. */
function v2Texts(rspec: Rspec, { attributes }: SliverRecord): Record<string, unknown> {
  const tags = attributes ?? {};
  return {
    cpu_cores: `${Math.min(rspec.cpuCores, MAX_WIRE_INT)}${rspec.cpuCoresBestEffort > 0 ? "b" : ""}`,
    capabilities: tags.capabilities ?? "",
    ip_addresses: tags.ip_addresses ?? "0.0.0.0",
    tags,
  };
}

function readTriples(value: unknown, profile: WireProfile): Loan[] {
  if (!Array.isArray(value)) throw wrongArgument("loans must be an array");
  if (value.length > MAX_LOANS) throw wrongArgument(`more than ${MAX_LOANS} loans`);
  return value.map((one: unknown) => {
    if (!Array.isArray(one) || one.length !== 3)
      throw wrongArgument("a loan is [recipient, resource, amount]");
    const [to, wire, amount] = one as [unknown, unknown, unknown];
    if (typeof to !== "string" || !NAME.test(to)) throw wrongArgument("a loan's recipient must be a name");
    const row = profile.resources.find((known) => known.wire === wire);
    if (row === undefined || profile.policy.minimums[row.resource] === undefined)
      throw wrongArgument(`${JSON.stringify(wire)} is not a resource that can be lent`);
    if (typeof amount !== "number" || !Number.isSafeInteger(amount) || amount < 0)
      throw wrongArgument("a loan's amount must be an integer, 0 or more");
    if (amount * row.scale > MAX_AMOUNT) throw wrongArgument("a loan's amount is too large");
    return { to, resource: row.resource, amount: amount * row.scale };
  });
}
