import {
  ApiError,
  DriverError,
  errorMap,
  type FaultRow,
  type HttpAnswer,
  judged,
  messageOf,
  type SaidFault,
} from "@nodeyard/driver";

const REMEDY = 'compare the credentials and their access with "nodeyard docs connect-ibm"';

/** Codes of VPC (its page of error messages), reasons of an instance's status, and the fields of an order that are at fault. */
const ERRORS: readonly FaultRow[] = [
  { kind: "access", statuses: [401], remedy: REMEDY },
  {
    kind: "access",
    codes: [/not_?authorized|forbidden|AccessDenied|token_(invalid|expired)/i],
    remedy: REMEDY,
  },
  { kind: "access", codes: ["NoSuchBucket"], remedy: "compare object-storage of the provider with IBM's" },
  { kind: "quota", codes: [/over_quota|quota_exceeded/] },
  { kind: "quota", statuses: [400, 403, 409], text: /over quota|exceeds? .*quota|quota .*exceed/i },
  { kind: "capacity", codes: [/capacity|preemption/, "cannot_start_ip_address"] },
  // No label is at fault: the provider names what is not there.
  { kind: "access", statuses: [400, 404], codes: [/^(vpc|resource_group|zone|primary_network_interface)\b/] },
  { kind: "configuration", codes: ["encryption_key_deleted"] },
  // IBM's own 404 has a code; any other is of a proxy.
  { kind: "not-found", statuses: [404], codes: [/not_found$|^NoSuch/] },
  { kind: "transient", statuses: [404, 410, 412, 423] },
  { kind: "access", statuses: [403], remedy: REMEDY },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/** A name that is in use: the answer of an earlier try was lost. */
export const IN_USE = /validation_unique_failed|name_exists|not_unique|already_exists|^Conflict$/;
/** A machine that cannot be deleted yet. */
export const NOT_YET = /delete_conflict|invalid_state/;

interface Said {
  readonly code?: unknown;
  readonly error_code?: unknown;
  readonly message?: unknown;
  readonly target?: { readonly name?: unknown };
}

/** What an answer says: `{"errors": [{"code", "message", "target"}], "trace"}`; object storage answers in XML. */
export function faultOf({ text, headers }: HttpAnswer): SaidFault {
  const requestId = headers["x-request-id"] ?? headers["x-amz-request-id"] ?? null;
  const [, xmlCode, xmlText = ""] = /<Code>([^<]*)<\/Code>(?:[\s\S]*<Message>([^<]*)<)?/.exec(text) ?? [];
  if (xmlCode !== undefined) return { requestId, codes: [xmlCode], text: `${xmlText} (${xmlCode})` };
  try {
    const { errors, trace, ...alone } = JSON.parse(text) as { errors?: Said[]; trace?: string } & Said;
    const [first] = Array.isArray(errors) ? errors : [alone];
    const codes = [first?.code ?? first?.error_code, first?.target?.name].filter(
      (code) => typeof code === "string",
    );
    if (codes.length === 0) return { requestId };
    return { requestId: trace ?? requestId, codes, text: `${first?.message ?? ""} (${codes.join(", ")})` };
  } catch {
    return {};
  }
}

/** Whether a refusal has such a code. */
export function hasCode(error: unknown, form: RegExp): error is ApiError {
  return error instanceof ApiError && error.codes.some((code) => form.test(code));
}

/**
 * The answer; undefined: IBM says that the thing itself is not there. Something in between says so of anything, and IBM of what the thing is in.
 */
export async function unlessMissing<T>(answer: Promise<T>, kind: string): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    const own = new RegExp(`^(${kind}_)?not_found$|^NoSuch(Key|Upload)$`);
    if (error instanceof ApiError && error.status === 404 && hasCode(error, own)) return undefined;
    throw error;
  }
}

/** The error of a call that makes something: what is missing then is what its body names. */
export function ofOrder(error: unknown): unknown {
  if (mapError(error, "").kind !== "not-found") return error;
  return new DriverError("configuration", messageOf(error), { cause: error });
}

/** A reason of a status. */
export interface Reason {
  readonly code?: string;
  readonly message?: string;
}

/** Why a machine failed, by the first reason of its status. */
export function failureOf(what: string, status: string, [reason]: readonly Reason[] = []): DriverError {
  const { code = "no reason is given", message = "" } = reason ?? {};
  const { kind } = judged(ERRORS, { codes: [code], status: undefined, text: message });
  return new DriverError(kind, `${what} went to ${status}: ${message} (${code})`);
}
