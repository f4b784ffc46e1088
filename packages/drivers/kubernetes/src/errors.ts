import { errorMap, type HttpAnswer, jsonIn, type SaidFault } from "@nodeyard/driver";
import type { Status } from "kubernetes-types/meta/v1.d.ts";

/** What an API server's error answer says: "AlreadyExists", "Forbidden", "Expired", and causes such as "NamespaceTerminating". */
export function statusFault({ text }: Pick<HttpAnswer, "text">): SaidFault {
  const { reason, message, details }: Status = jsonIn(text);
  const codes = [reason, ...(details?.causes ?? []).map((cause) => cause.reason)];
  return { codes: codes.filter((code) => code !== undefined), text: message };
}

/** Errors of the API server. Words of the message count before the status, because a quota, roles and admission rules all answer 403. */
export const mapError = errorMap([
  { kind: "quota", text: /exceeded quota/i },
  // The namespace of an earlier attempt is still terminating, or its default service account does not exist yet.
  { kind: "transient", codes: ["NamespaceTerminating"] },
  { kind: "transient", text: /serviceaccount .* not found/i },
  // RBAC's own words: 'User "x" cannot create resource "pods" ..'. Any other refusal is an admission rule's, about this object.
  { kind: "access", statuses: [403], text: /cannot \S+ resource|anonymous/i },
  { kind: "configuration", statuses: [403] },
]);
