import { errorMap, type FaultRow, type HttpAnswer, jsonIn, type SaidFault, xmlFault } from "@nodeyard/driver";

const REMEDY = 'compare the credentials and their access with "nodeyard docs connect-ibm"';

/** Codes of VPC (its page of error messages), reasons of an instance's status, and the fields of an order that are at fault. */
export const ERRORS: readonly FaultRow[] = [
  { kind: "access", statuses: [401], remedy: REMEDY },
  { kind: "access", codes: /not_?authorized|forbidden|AccessDenied/i, remedy: REMEDY },
  { kind: "access", codes: /token_(invalid|expired)/i, remedy: REMEDY },
  { kind: "access", codes: ["NoSuchBucket"], remedy: "compare object-storage of the provider with IBM's" },
  { kind: "quota", codes: /over_quota|quota_exceeded/ },
  { kind: "quota", statuses: [400, 403, 409], text: /over quota|exceeds? .*quota|quota .*exceed/i },
  { kind: "capacity", codes: [/capacity|preemption/, "cannot_start_ip_address"] },
  // No label is at fault: the provider names what is not there.
  { kind: "access", statuses: [400, 404], codes: /^(vpc|resource_group|zone|primary_network_interface)\b/ },
  { kind: "configuration", codes: ["encryption_key_deleted"] },
  // IBM's own 404 has a code; any other is of a proxy.
  { kind: "not-found", statuses: [404], codes: /not_found$|^NoSuch/ },
  { kind: "transient", statuses: [404, 410, 412, 423] },
  { kind: "access", statuses: [403], remedy: REMEDY },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/** A name that is in use: the answer of an earlier try was lost. */
export const IN_USE = /validation_unique_failed|name_exists|not_unique|already_exists|^Conflict$/;
/** A machine that cannot be deleted yet. */
export const NOT_YET = /delete_conflict|invalid_state/;

/**
 * What an answer says: `{"errors": [{"code", "message", "target"}], "trace"}`. Resource groups say `error_code`, the login `errorCode` and
 * `errorMessage`, and object storage answers in XML.
 */
export function faultOf({ text, headers }: HttpAnswer): SaidFault {
  const id = headers["x-request-id"] ?? headers["x-amz-request-id"] ?? null;
  const xml = xmlFault(text);
  if (xml !== undefined) return { requestId: id, ...xml };
  const { errors, trace, ...alone } = jsonIn(text);
  const said = (Array.isArray(errors) ? errors[0] : alone) as Readonly<Record<string, unknown>> | undefined;
  const target = (said?.target as { readonly name?: unknown } | undefined)?.name;
  const codes = [said?.code ?? said?.error_code ?? said?.errorCode, target].filter(
    (code) => typeof code === "string",
  );
  if (codes.length === 0) return { requestId: id };
  const message = said?.message ?? said?.errorMessage ?? "";
  const requestId = typeof trace === "string" ? trace : id;
  return { requestId, codes, text: `${message} (${codes.join(", ")})` };
}
