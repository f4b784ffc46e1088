import { errorClass, NodeyardError, withoutSecrets } from "@nodeyard/runtime";

/** An error answer of the API server. `reason` and `message` come from its Status object. */
export class KubeError extends NodeyardError {
  /** The HTTP status; in a watch the `code` of its ERROR event. */
  readonly status: number;
  /** "AlreadyExists", "Forbidden", "Expired"; empty when the answer was not a Status object. */
  readonly reason: string;
  /** Message of the server, without the call. */
  readonly said: string;
  /** Reasons in `details.causes`, such as "NamespaceTerminating". */
  readonly causes: readonly string[];

  constructor(what: string, status: number, text: string) {
    const { reason = "", message, details } = statusOf(text);
    const said = withoutSecrets(message ?? text)
      .slice(0, LONGEST)
      .replace(/\s+/g, " ")
      .trim();
    super("kubernetes.refused", `${what} was answered ${status}: ${said}`);
    this.status = status;
    this.reason = reason;
    this.said = said;
    this.causes = (details?.causes ?? []).flatMap(({ reason }) => reason ?? []);
  }
}

/** The API server could not be reached, or the connection broke before the answer. A call may have taken effect. */
export class NoAnswer extends errorClass("kubernetes.no_answer") {}

/** The kubeconfig, or a file or plugin that it names, cannot be used. */
export class KubeConfigError extends errorClass("kubernetes.configuration") {}

/** Characters of the server's message that are kept. Admission webhooks and proxies answer with whole pages. */
const LONGEST = 500;

/** The fields of a Status object that are read (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). */
interface Status {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string }[] };
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
