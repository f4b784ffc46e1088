import { BucketRefusal } from "../../bucket.ts";
import type { Answer } from "../../double-server.ts";

/** Of a proxy on the way. */
export function page(status: number): Answer {
  const text = status < 400 ? "" : "<html><title>404</title><p>There is no such page.</p></html>";
  return { status, headers: { "content-type": "text/html", location: "https://elsewhere.example/" }, text };
}

/** The request is refused. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly target: object | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    target?: { readonly name: string; readonly type: string; readonly value?: string },
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.target = target;
  }

  /** In the form of VPC (its reference, "Error handling"), of object storage, or of the login. */
  answer(form: "vpc" | "objects" | "login"): Answer {
    const { status, code, message, target } = this;
    const later = status === 429 ? { "retry-after": "1" } : {};
    if (form === "login") return json(status, { errorCode: code, errorMessage: message, context: {} });
    if (form === "objects") return new BucketRefusal(status, code, message).answer();
    const error = {
      code,
      message,
      more_info: "https://cloud.ibm.com/docs/vpc?topic=vpc-rias-error-messages",
      ...(target && { target }),
    };
    return json(
      status,
      { errors: [error], trace: "7c2e1b7e-0000-4000-8000-000000000000", status_code: status },
      later,
    );
  }
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  const text = body === undefined ? "" : JSON.stringify(body);
  return { status, headers: { "content-type": "application/json; charset=utf-8", ...headers }, text };
}

export function missing(kind: string, id: string): Refusal {
  return new Refusal(404, "not_found", `${kind} not found`, { name: "id", type: "parameter", value: id });
}
