import { type HttpAnswer, jsonIn, type SaidFault } from "@nodeyard/driver";

/** The fields of a Status object that are read (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). */
interface Status {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string }[] };
}

/** What an API server's error answer says: "AlreadyExists", "Forbidden", "Expired", and causes such as "NamespaceTerminating". */
export function statusFault({ text }: Pick<HttpAnswer, "text">): SaidFault {
  const { reason, message, details }: Status = jsonIn(text);
  const codes = [reason, ...(details?.causes ?? []).map((cause) => cause.reason)];
  return { codes: codes.filter((code) => code !== undefined), text: message };
}
