import { asDriverError, DriverError, type DriverErrorKind } from "@nodeyard/driver";

/** What the fake cloud answers when it does not do what was asked, with the status that a real one would use. */
export class CloudError extends Error {
  readonly status: 400 | 403 | 404 | 500 | 503;

  constructor(status: CloudError["status"], message: string) {
    super(message);
    this.name = "CloudError";
    this.status = status;
  }
}

const KINDS: Readonly<Record<CloudError["status"], DriverErrorKind>> = {
  400: "configuration",
  403: "quota",
  404: "not-found",
  500: "transient",
  503: "capacity",
};

/** The one place where the cloud's errors become the driver's. */
export function mapError(error: unknown, place: string): unknown {
  if (!(error instanceof CloudError)) return asDriverError(error, place);
  return new DriverError(KINDS[error.status], `${place}: ${error.message}`, { cause: error });
}
