import { isResource, type Loan, type LoanStatus, MAX_AMOUNT, NAME } from "@nodeyard/sliver-protocol";
import type { Policy } from "../../core/index.ts";
import { PROFILES } from "../../profiles/index.ts";
import { DENIED, Fault, wrongArgument } from "../fault.ts";
import type { Dialect } from "./dialect.ts";

const MAX_LOANS = 1000;

/** The one vocabulary: exact amounts in our own units, loanStatuses, and the methods that a launcher needs. */
export function nativeDialect(minimums: Policy["minimums"]): Dialect {
  return {
    name: "native",
    methods: [...PROFILES.v2.methods, "Deliver", "GetDocument", "RotateKeys", "Status", "Watch"].sort(),
    waits: true,
    strict: true,
    help: (docs) => docs.map(({ name, doc }) => `${name}: ${doc}\n`).join(""),
    rspec: (rspec) => rspec,
    readLoans: (value) => readLoans(value, minimums),
    writeLoans: (loans) => loans,
    loansSet: (loans) => ({
      accepted: loans.filter(({ honoured }) => honoured),
      refused: loans.filter(({ honoured }) => !honoured),
    }),
    record: (record, effective, loans) => ({ ...record, effective, loans }),
    denied: ({ account }) => new Fault(DENIED, `${account}: permission denied`),
    inner: (fault) => fault,
  };
}

function readLoans(value: unknown, minimums: Policy["minimums"]): Loan[] {
  if (!Array.isArray(value)) throw wrongArgument("loans must be an array");
  if (value.length > MAX_LOANS) throw wrongArgument(`more than ${MAX_LOANS} loans`);
  return value.map((one: unknown) => {
    const { to, resource, amount, until, generation } = (one ?? {}) as Partial<
      Record<keyof LoanStatus, unknown>
    >;
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
      ...(until === undefined ? {} : { until }),
      ...(generation === undefined ? {} : { generation }),
    };
  });
}

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
