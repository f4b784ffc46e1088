import { defined } from "@nodeyard/runtime";
import {
  isResource,
  type Loan,
  type LoanStatus,
  MAX_AMOUNT,
  MAX_LOANS,
  NAME,
  type Rspec,
} from "@nodeyard/sliver-protocol";
import { MAX_WIRE_INT, type Policy, type WireProfile } from "../core/profiles.ts";
import type { SliverRecord } from "../core/record.ts";
import { DENIED, type Dialect, FAILED_CALL, Fault, WRONG_ARGUMENT, wrongArgument } from "./method.ts";

/**
 * Nodeyard's own dialect: exact amounts in its own units, and the status of each loan. A call that changes a sliver waits for the
 * machine, and a mistake is a fault. `minimums` says which resources can be lent.
 */
export function nativeDialect(minimums: Policy["minimums"]): Dialect {
  return {
    name: "native",
    waits: true,
    strict: true,
    help: (docs) => docs.map(({ name, doc }) => `${name}: ${doc}\n`).join(""),
    rspec: (rspec) => rspec,
    readLoans: (value) => listOf(value).map((one) => readLoan(one, minimums)),
    writeLoans: (loans) => loans,
    loansSet: (loans) => ({
      accepted: loans.filter(({ honoured }) => honoured),
      refused: loans.filter(({ honoured }) => !honoured),
    }),
    record: ({ local, ...record }, effective, loans) => ({
      ...record,
      local: { ...local, loans },
      effective,
      loans,
    }),
    denied: ({ account }) => new Fault(DENIED, `${account}: permission denied`),
    inner: (fault) => fault,
  };
}

/**
 * A dialect of the old manager, made from the table of its names and units. Its two lines differ: 2.0 waits and refuses where the older
 * one (r0) answers 1 at once; 2.0 adds texts to an rspec, puts the account into refusals and wraps faults. Amounts are rounded down to
 * the wire's units.
 */
export function wireDialect(profile: WireProfile): Dialect {
  const isV2 = profile.name === "v2";
  const loansOut = (loans: readonly LoanStatus[]) =>
    loans.flatMap(({ to, resource, amount }) => {
      const row = profile.resources.find((one) => one.resource === resource);
      return row === undefined ? [] : [[to, row.wire, wireInt(amount / row.scale)]];
    });
  const rspecOut = (rspec: Rspec, record: SliverRecord): Record<string, unknown> => {
    const amounts = profile.resources.map(({ wire, resource, scale }) => [
      wire,
      wireInt(rspec[resource] / scale),
    ]);
    return { ...Object.fromEntries(amounts), ...(isV2 ? v2Texts(rspec, record) : {}) };
  };
  return {
    name: profile.name,
    waits: isV2,
    strict: isV2,
    help: (docs) => docs.map(({ name, doc }) => (isV2 ? `**** ${name}\n${doc}\n` : `${doc}\n`)).join(""),
    rspec: rspecOut,
    readLoans: (value) => listOf(value).map((one) => readTriple(one, profile)),
    writeLoans: loansOut,
    loansSet: () => 1,
    record: (record, effective, loans) => ({
      name: record.name,
      timestamp: wireInt(record.stamp.number),
      type: record.kind === "controller" ? "controller.Controller" : "sliver.VServer",
      instantiation: record.instantiation,
      ...(record.expiresAt === undefined ? {} : { expires: wireInt(record.expiresAt) }),
      ...defined({ slice_id: record.sliceId }),
      keys: record.keys.join("\n"),
      initscript: record.initscript,
      delegations: record.delegations.map(({ caller }) => caller),
      attributes: record.attributes ?? {},
      rspec: rspecOut(record.rspec, record),
      _rspec: rspecOut(effective, record),
      _loans: loansOut(loans),
    }),
    denied: ({ account }) =>
      new Fault(DENIED, isV2 ? `${account}: Permission denied.` : "Permission denied."),
    inner: (fault) => (isV2 ? new Fault(FAILED_CALL, `Error in call: ${innerText(fault)}`) : fault),
  };
}

/** XML-RPC integers have 32 bits. The old manager failed for larger amounts; this one answers the largest integer. */
function wireInt(amount: number): number {
  return Math.min(MAX_WIRE_INT, Math.floor(amount));
}

/** The old manager reported a fault within a call with its number, and any other error by its text alone. */
function innerText({ code, message }: Fault): string {
  return code === WRONG_ARGUMENT ? `<Fault ${code}: '${message}'>` : message;
}

/** Rspec entries that the 2.0 line kept as text. Capabilities and addresses are shown as requested, but never granted. */
function v2Texts(rspec: Rspec, { attributes }: SliverRecord): Record<string, unknown> {
  const tags = attributes ?? {};
  return {
    cpu_cores: `${Math.min(rspec.cpuCores, MAX_WIRE_INT)}${rspec.cpuCoresBestEffort > 0 ? "b" : ""}`,
    capabilities: tags.capabilities ?? "",
    ip_addresses: tags.ip_addresses ?? "0.0.0.0",
    tags,
  };
}

/** The list of loans of a caller. Throws a fault for more than a document may have. */
function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw wrongArgument("loans must be an array");
  if (value.length > MAX_LOANS) throw wrongArgument(`more than ${MAX_LOANS} loans`);
  return value;
}

/** A loan of the native dialect. Unknown members are ignored. Throws a fault that names the member. */
function readLoan(value: unknown, minimums: Policy["minimums"]): Loan {
  const { to, resource, amount, until, generation } = (value ?? {}) as Partial<Record<keyof Loan, unknown>>;
  if (typeof to !== "string" || !NAME.test(to)) throw wrongArgument("loan.to must be a name");
  if (typeof resource !== "string" || !isResource(resource) || minimums[resource] === undefined)
    throw wrongArgument(`loan.resource ${JSON.stringify(resource)} cannot be lent`);
  if (!isWhole(amount) || amount > MAX_AMOUNT)
    throw wrongArgument("loan.amount must be a whole number, 0 or more");
  if (until !== undefined && !isWhole(until)) throw wrongArgument("loan.until must be seconds");
  if (generation !== undefined && !isWhole(generation))
    throw wrongArgument("loan.generation must be a whole number");
  return {
    to,
    resource,
    amount,
    ...defined({ until, generation }),
  };
}

/** A loan as `[recipient, wire name, amount]`, the amount in the wire's unit. Throws a fault. */
function readTriple(value: unknown, profile: WireProfile): Loan {
  if (!Array.isArray(value) || value.length !== 3)
    throw wrongArgument("a loan is [recipient, resource, amount]");
  const [to, wire, amount] = value as [unknown, unknown, unknown];
  if (typeof to !== "string" || !NAME.test(to)) throw wrongArgument("a loan's recipient must be a name");
  const row = profile.resources.find((known) => known.wire === wire);
  if (row === undefined || profile.policy.minimums[row.resource] === undefined)
    throw wrongArgument(`${JSON.stringify(wire)} is not a resource that can be lent`);
  if (!isWhole(amount)) throw wrongArgument("a loan's amount must be an integer, 0 or more");
  if (amount * row.scale > MAX_AMOUNT) throw wrongArgument("a loan's amount is too large");
  return { to, resource: row.resource, amount: amount * row.scale };
}

/** Amounts, seconds and generations are exact, so a number that JavaScript would round is refused. */
function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
