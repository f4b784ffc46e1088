import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";

/** An error of the fake cloud, with the HTTP status that a real cloud would send. */
export class CloudError extends Error {
  readonly status: 400 | 401 | 403 | 404 | 409 | 500 | 503;

  constructor(status: CloudError["status"], message: string) {
    super(message);
    this.name = "CloudError";
    this.status = status;
  }
}

/** Kinds by status: the same that a driver of a real cloud would find by text and code. */
const KINDS: Readonly<Record<CloudError["status"], DriverErrorKind>> = {
  400: "configuration",
  401: "access",
  403: "quota",
  404: "not-found",
  409: "transient",
  500: "transient",
  503: "capacity",
};

/** Translates the cloud's errors into DriverErrors; no other place does so. */
export function mapError(error: unknown, place: string): unknown {
  if (!(error instanceof CloudError)) return asDriverError(error, place);
  return new DriverError(KINDS[error.status], `${place}: ${error.message}`, { cause: error });
}
