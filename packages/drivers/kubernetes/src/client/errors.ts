import type { HttpAnswer, SaidFault } from "@nodeyard/driver";

/** The fields of a Status object that are read (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). */
interface Status {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string }[] };
}

/** What an API server's error answer says: "AlreadyExists", "Forbidden", "Expired", and causes such as "NamespaceTerminating". */
export function statusFault({ text }: Pick<HttpAnswer, "text">): SaidFault {
  const { reason, message, details } = statusOf(text);
  const codes = [reason, ...(details?.causes ?? []).map((cause) => cause.reason)];
  return { codes: codes.filter((code) => code !== undefined), text: message };
}

/** Empty for an answer that is no JSON object, as from a proxy. */
function statusOf(text: string): Status {
  try {
    const parsed = JSON.parse(text) as Status | null;
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
