import { errorClass, messageOf, NodeyardError, withoutSecrets } from "@nodeyard/runtime";
import type { MapError } from "./calls.ts";
import { asDriverError, DriverError, type DriverErrorKind } from "./errors.ts";
import type { HttpAnswer, HttpRequest } from "./wire.ts";

/** Why a cloud refused something, or failed at it. */
export interface Fault {
  /** The cloud's words for it, the most exact first: "OverQuota", "InsufficientInstanceCapacity". Empty: it has none. */
  readonly codes: readonly string[];
  /** HTTP status; undefined: there was no answer. */
  readonly status: number | undefined;
  /** The cloud's own text. */
  readonly text: string;
}

/** A row of a cloud's table of errors. It fits a fault that has one of the codes, of the statuses and such a text, as far as the row has them. */
export interface FaultRow {
  readonly kind: DriverErrorKind;
  /** Codes, and forms of codes. */
  readonly codes?: readonly (string | RegExp)[] | RegExp;
  readonly statuses?: readonly number[];
  readonly text?: RegExp;
  /** What an operator can do, without a capital and a full stop. */
  readonly remedy?: string;
}

/** The first row that fits; for a fault that none fits, what its status means everywhere. */
export function judged(table: readonly FaultRow[], fault: Fault): Pick<FaultRow, "kind" | "remedy"> {
  const { status, text } = fault;
  const fits = (row: FaultRow) =>
    (row.codes === undefined || [row.codes].flat().some((code) => hasCode(fault, code))) &&
    (row.statuses === undefined || (status !== undefined && row.statuses.includes(status))) &&
    (row.text === undefined || row.text.test(text));
  return table.find(fits) ?? { kind: kindOfStatus(status) };
}

function kindOfStatus(status: number | undefined): DriverErrorKind {
  // The same call may succeed later: a redirect is the answer of something in between, 425 asks to repeat (RFC 8470).
  if (status === undefined || status < 400 || status >= 500 || [408, 409, 425, 429].includes(status))
    return "transient";
  if (status === 404 || status === 410) return "not-found";
  if (status === 401 || status === 403) return "access";
  // 422: the server understands the body, and refuses what it says (RFC 9110 15.5.21).
  return status === 400 || status === 422 ? "configuration" : "fatal";
}

/** Makes DriverErrors of all errors of a driver's code by its table; no other place does so. */
export function errorMap(table: readonly FaultRow[]): (error: unknown, place: string) => DriverError {
  const judge = (error: unknown): (Pick<FaultRow, "kind" | "remedy"> & { message: string }) | null => {
    if (error instanceof ApiError) return { ...judged(table, error), message: error.message };
    if (error instanceof CloudConfigError) return { kind: "access", message: error.message };
    if (error instanceof NoAnswer || error instanceof OddAnswer)
      return { kind: "transient", message: error.message };
    return null;
  };
  return ((error, place) => {
    // A shared load may already have wrapped the error as `fatal`.
    const own = error instanceof DriverError && error.kind === "fatal" ? (error.cause ?? error) : error;
    const found = judge(own);
    if (found === null) return asDriverError(error, place);
    const { kind, message, remedy } = found;
    return new DriverError(kind, `${place}: ${message}${remedy ? `; ${remedy}` : ""}`, { cause: own });
  }) satisfies MapError;
}

/** The error of what was accepted and then failed, such as a machine or an operation, by the code and the text that the cloud gives. */
export function failureBy(
  table: readonly FaultRow[],
  what: string,
  { code = "no code", message = "no reason is given" }: { readonly code?: string; readonly message?: string },
): DriverError {
  const { kind } = judged(table, { codes: [code], status: undefined, text: message });
  return new DriverError(kind, `${what}: ${message} (${code})`);
}

/** The error of a call that makes something: what is missing then is what its body names. `mapError`: of `errorMap`. */
export function orderFault(error: unknown, mapError: ReturnType<typeof errorMap>): unknown {
  if (mapError(error, "").kind !== "not-found") return error;
  return new DriverError("configuration", messageOf(error), { cause: error });
}

/** What an answer says of a fault, for `ApiError`. */
export interface SaidFault {
  readonly codes?: readonly string[];
  /** Undefined: nothing that can be read, and the answer is shown as it is. */
  readonly text?: string | undefined;
  /** The service's id of the request. */
  readonly requestId?: string | null;
  /** What answered in the cloud's place (`pageText`). */
  readonly by?: string;
}

/** An error in XML, as object storage has it; undefined: it is none. */
export function xmlFault(text: string): Pick<SaidFault, "codes" | "text"> | undefined {
  const [, code, message = ""] = /<Code>([^<]*)<\/Code>(?:[\s\S]*<Message>([^<]*)<)?/.exec(text) ?? [];
  return code === undefined ? undefined : { codes: [code], text: `${message} (${code})` };
}

/** A cloud answered with an error status. The message has the request id, by which operators find the request in the service's log. */
export class ApiError extends NodeyardError implements Fault {
  readonly codes: readonly string[];
  readonly status: number;
  readonly text: string;
  /** Null when the answer has none, as from a proxy. */
  readonly requestId: string | null;

  /** `what`: the call, as `callText` says it. */
  constructor(what: string, answer: Pick<HttpAnswer, "status" | "text">, fault: SaidFault = {}) {
    const { codes = [], requestId = null, by = "" } = fault;
    const text = short(fault.text ?? plain(answer.text));
    const id = requestId === null ? "" : ` (request ${requestId})`;
    super("cloud.refused", `${what} was answered ${answer.status}${by}: ${text}${id}`);
    this.codes = codes;
    this.status = answer.status;
    this.text = text;
    this.requestId = requestId;
  }
}

/** Whether a cloud refused a call with one of these statuses, codes or forms of codes. */
export function wasRefused(error: unknown, ...why: readonly (number | string | RegExp)[]): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  return why.some((one) => (typeof one === "number" ? error.status === one : hasCode(error, one)));
}

function hasCode({ codes }: Pick<Fault, "codes">, code: string | RegExp): boolean {
  return typeof code === "string" ? codes.includes(code) : codes.some((one) => code.test(one));
}

/** The answer of a call; undefined: it was refused with one of these, by default because the object does not exist. */
export async function unlessRefused<T>(
  call: Promise<T>,
  ...why: readonly (number | string | RegExp)[]
): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (wasRefused(error, ...(why.length === 0 ? [404] : why))) return undefined;
    throw error;
  }
}

/** A cloud could not be reached, or the connection broke before the answer. A call may have taken effect. */
export class NoAnswer extends errorClass("cloud.no_answer") {}

/** A cloud sent an answer that its API does not define. A call has taken effect. */
export class OddAnswer extends errorClass("cloud.odd_answer") {}

/** What is configured does not fit the cloud, or credentials are incomplete or cannot be read. */
export class CloudConfigError extends errorClass("cloud.configuration") {}

/** The error for a call without an answer. What is wrong with the configuration stays so, such as a file that is read for a call. */
export function noAnswer(what: string, cause: unknown): NoAnswer | CloudConfigError {
  if (cause instanceof CloudConfigError) return cause;
  return new NoAnswer(`${what} got no answer: ${textOf(cause)}`, { cause });
}

/** A request for messages: without the query, which may contain names, and without the host, which the configuration shows. */
export function callText({ method, url }: Pick<HttpRequest, "method" | "url">, service = ""): string {
  return `${service && `${service}: `}${method} ${URL.canParse(url) ? new URL(url).pathname : url}`;
}

/** Names what answers with a page of HTML in the place of a cloud: a proxy, or a login to a network. Empty for any other answer. */
export function pageText({ url }: Pick<HttpRequest, "url">, { text }: Pick<HttpAnswer, "text">): string {
  if (!isPage(text) || !URL.canParse(url)) return "";
  return ` by ${new URL(url).host} with a page of HTML that is not the cloud's`;
}

function isPage(text: string): boolean {
  return text.trimStart().startsWith("<");
}

/** Characters of a cloud's text that are kept: proxies answer with whole pages. */
const LONGEST = 500;

function short(text: string): string {
  const line = withoutSecrets(text).replace(/\s+/g, " ").trim() || "no reason given";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}

/** The text of an HTML page. Title and style are left out, since the title repeats the status. Other text stays as it is. */
function plain(text: string): string {
  if (!isPage(text)) return text;
  return text.replaceAll(/<(title|style)[\s\S]*?<\/\1>/g, " ").replaceAll(/<[^>]*>/g, " ");
}

/** undici says "fetch failed" or nothing; the reason is in the cause. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return textOf(error.errors[0]);
  const text = messageOf(error);
  return text === "" && error instanceof Error && "code" in error ? String(error.code) : text;
}
