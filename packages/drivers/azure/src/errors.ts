import {
  ApiError,
  errorMap,
  type FaultRow,
  failureBy,
  type HttpAnswer,
  jsonIn,
  type SaidFault,
  xmlFault,
} from "@nodeyard/driver";

/** Codes of Azure whose kind does not follow from the HTTP status. */
const ERRORS: readonly FaultRow[] = [
  { kind: "quota", codes: ["QuotaExceeded", /^(IPv4StandardSku)?PublicIp\w*CountLimitReached$/i] },
  // The code stands, too, for a resource that another operation changes, and for what is never allowed.
  { kind: "quota", codes: ["OperationNotAllowed"], text: /quota|exceed\w* .*(limit|maximum)/i },
  { kind: "capacity", codes: [/^(Zonal)?AllocationFailed$/, /^Overconstrained(Zonal)?AllocationRequest$/] },
  { kind: "capacity", codes: ["SkuNotAvailable", "SpotPriceGreaterThanProvidedMaxPrice", "SubnetIsFull"] },
  { kind: "unsupported", codes: ["NotAvailableForSubscription", "AvailabilityZoneNotSupported"] },
  // The machine was made, and its agent did not report: mostly a fault of the image.
  { kind: "timeout", codes: ["OSProvisioningTimedOut", "VMStartTimedOut"] },
  {
    kind: "access",
    codes: /^(Linked)?(Authorization|AccessCheck)Failed$/,
    remedy: 'compare the role of the credential with that of "nodeyard docs connect-azure"',
  },
  { kind: "access", codes: ["MissingSubscriptionRegistration", "ResourceGroupNotFound", "ScopeLocked"] },
  { kind: "access", codes: /^(ReadOnlyDisabled)?Subscription(NotFound)?$/ },
  { kind: "access", statuses: [401], remedy: "check the credentials of auth-path, or of the environment" },
  { kind: "configuration", codes: ["RequestDisallowedByPolicy", "ResourcePurchaseValidationFailed"] },
  { kind: "configuration", codes: ["InvalidResourceReference", /^(Platform|Gallery)?ImageNotFound$/] },
  { kind: "not-found", statuses: [404], codes: /./ },
  // Of what answers in Azure's place.
  { kind: "transient", statuses: [404, 412, 423] },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/** The error of a machine that was made and then failed. */
export const failureOf = (what: string, reason: { readonly code: string; readonly message?: string }) =>
  failureBy(ERRORS, what, reason);

/** `{"error": {"code", "message", "details"}}` of the resource manager; login and blobs have forms of their own. */
export function faultIn({ text, headers }: Pick<HttpAnswer, "text" | "headers">): SaidFault {
  const requestId = headers["x-ms-request-id"] ?? null;
  const xml = xmlFault(text);
  if (xml !== undefined) return { requestId, ...xml };
  const { error, error_description: description } = jsonIn(text);
  return typeof description === "string" ? { requestId, text: description } : { requestId, ...said(error) };
}

/** The failure of an operation that Azure had accepted. */
export function failed(what: string, error: unknown): ApiError {
  return new ApiError(what, { status: 0, text: "no reason given" }, said(error));
}

/** Azure's reason. An outer code may only say that the request failed. */
function said(error: unknown): SaidFault {
  const { code, message, details } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const inner = Array.isArray(details) ? said(details[0]).codes : [];
  const text = typeof message === "string" ? `${String(code ?? "")} ${message}`.trim() : undefined;
  return { codes: [...(inner ?? []), ...(typeof code === "string" ? [code] : [])], text };
}

/** Codes for a resource that is missing. The status alone is also that of a missing group or subscription, and of a proxy. */
export const MISSING = ["ResourceNotFound", "NotFound"] as const;
