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

/** Codes of VPC (its page of error messages, and the reasons of an instance's status), of object storage, and of the login. */
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
  { kind: "capacity", codes: [/capacity/, /insufficient_(available_)?(ips?|addresses)/] },
  // The place of a machine that was taken back while it was made, or that never found one.
  { kind: "capacity", codes: ["stopped_by_preemption", "cannot_start_ip_address"] },
  { kind: "unsupported", codes: [/not_(supported|available)_in_zone/] },
  { kind: "configuration", codes: ["encryption_key_deleted"] },
  // IBM's own 404 has a code; any other is of a proxy.
  { kind: "not-found", statuses: [404], codes: [/not_found$/, "NoSuchKey", "NoSuchUpload"] },
  { kind: "transient", statuses: [404, 410, 412, 423] },
  // Of an instance that began: what it lacked is there at another time.
  { kind: "transient", codes: [/^cannot_start|^stopped_/] },
  { kind: "access", statuses: [403], remedy: REMEDY },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/** The codes of a name that is in use: the same call was answered before, or its answer was lost. */
export const IN_USE = [/validation_unique_failed|name_exists|not_unique|already_exists/] as const;

/** What an answer says: `{"errors": [{"code", "message"}], "trace"}`; object storage answers in XML, resource groups with `error_code`. */
export function faultOf({ text, headers }: HttpAnswer): SaidFault {
  const requestId = headers["x-request-id"] ?? headers["x-amz-request-id"] ?? null;
  if (/<Error>/.test(text)) {
    const [, code = ""] = /<Code>([^<]*)<\/Code>/.exec(text) ?? [];
    const [, message = ""] = /<Message>([^<]*)<\/Message>/.exec(text) ?? [];
    return { requestId, codes: [code], text: `${message} (${code})` };
  }
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const list = Array.isArray(body.errors) ? (body.errors as Record<string, unknown>[]) : [body];
    const words = list.map(({ code, error_code: other, message }) => ({ code: code ?? other, message }));
    const codes = words.flatMap(({ code }) => (typeof code === "string" ? [code] : []));
    const said = words.flatMap(({ message }) => (typeof message === "string" ? [message] : []));
    if (codes.length + said.length === 0) return { requestId };
    const id = typeof body.trace === "string" ? body.trace : requestId;
    return { requestId: id, codes, text: `${said.join("; ")} (${codes.join(", ")})` };
  } catch {
    return {};
  }
}

/** Whether a refusal has one of the codes. */
export function hasCode(error: unknown, codes: readonly RegExp[]): error is ApiError {
  return error instanceof ApiError && error.codes.some((code) => codes.some((one) => one.test(code)));
}

/**
 * The answer; undefined: IBM says that the thing itself is not there. Something in between says so of anything, and IBM of what the thing is in.
 */
export async function unlessMissing<T>(answer: Promise<T>, kind: string): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    const codes = [/^not_found$/, new RegExp(`^${kind}_not_found$`), /^NoSuch(Key|Upload)$/];
    if (error instanceof ApiError && error.status === 404 && hasCode(error, codes)) return undefined;
    throw error;
  }
}

/** The error of a call that makes something: what is missing then is what its body names. */
export function ofOrder(error: unknown): unknown {
  if (mapError(error, "").kind !== "not-found") return error;
  return new DriverError("configuration", messageOf(error), { cause: error });
}

/** Why a machine failed, by the first reason of its status. */
export function failureOf(
  place: string,
  status: string,
  [reason]: readonly { readonly code?: string; readonly message?: string }[] = [],
): DriverError {
  const { code = "no reason is given", message = "" } = reason ?? {};
  const { kind } = judged(ERRORS, { codes: [code], status: undefined, text: message });
  return new DriverError(kind, `${place} went to ${status}: ${message} (${code})`);
}
