import { errorClass, NodeyardError } from "@nodeyard/runtime";

/** The API server answered, but not with success: `reason` and `message` are those of its Status object. */
export class KubeError extends NodeyardError {
  readonly status: number;
  /** "AlreadyExists", "Forbidden", "Expired"; empty where the answer was no Status. */
  readonly reason: string;
  /** What the server says, alone. */
  readonly said: string;
  /** Words of `details.causes`, such as "NamespaceTerminating". */
  readonly causes: readonly string[];

  constructor(what: string, status: number, text: string) {
    const { reason = "", message, details } = statusOf(text);
    const said = (message ?? text).slice(0, LONGEST).replace(/\s+/g, " ").trim();
    super("kubernetes.refused", `${what} was answered ${status}: ${said}`);
    this.status = status;
    this.reason = reason;
    this.said = said;
    this.causes = (details?.causes ?? []).flatMap(({ reason }) => reason ?? []);
  }
}

/** The API server could not be reached, or the connection broke before the answer. */
export class NoAnswer extends errorClass("kubernetes.no_answer") {}

/** The kubeconfig, or what it refers to, cannot be used. */
export class KubeConfigError extends errorClass("kubernetes.configuration") {}

const LONGEST = 500;

interface Status {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string }[] };
}

function statusOf(text: string): Status {
  try {
    const parsed = JSON.parse(text) as Status | null;
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
