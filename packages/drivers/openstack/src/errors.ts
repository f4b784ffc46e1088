import { DriverError, errorMap, type FaultRow, judged } from "@nodeyard/driver";
import type { Server } from "./api/index.ts";

const RIGHT = "the credential lacks a permission; ask the operator of the cloud";

/** neutron names the types of its errors (neutron_lib.exceptions); of the other services text counts where a status has two meanings. */
export const ERRORS: readonly (FaultRow & { readonly codes?: readonly string[] })[] = [
  { kind: "quota", codes: ["OverQuota"] },
  {
    kind: "capacity",
    codes: [
      "IpAddressGenerationFailure",
      "ExternalIpAddressExhausted",
      "NoNetworkAvailable",
      "MacAddressGenerationFailure",
    ],
  },
  { kind: "access", codes: ["PolicyNotAuthorized"], remedy: RIGHT },
  // nova answers 403 and cinder 413 for a quota. A 413 without these words is a rate limit of older services.
  {
    kind: "quota",
    statuses: [403, 413],
    text: /quota|number of ports exceeded|exceeded.*(limit|maximum)/i,
  },
  { kind: "transient", statuses: [413] },
  // The session logged in again once, and the new token was refused as well.
  { kind: "access", statuses: [401], remedy: "check the credential in clouds.yaml and secure.yaml" },
  { kind: "access", statuses: [403], remedy: RIGHT },
];

/** Makes DriverErrors of all errors of the driver's code; no other place does so. */
export const mapError = errorMap(ERRORS);

/**
 * The error for a server in state ERROR. nova's `fault.code` is the HTTP status of the exception; 500 is not specific. Never of
 * kind "configuration", because nova had accepted the request.
 */
export function faultError(server: Server, place: string): DriverError {
  const { code = 500, message = "no fault is given" } = server.fault ?? {};
  const { kind } = judged(
    [
      { kind: "quota", statuses: [413] },
      { kind: "quota", text: /quota/i },
      { kind: "capacity", text: /no valid host|exhausted all hosts|not enough|insufficient/i },
      { kind: "transient" },
    ],
    { codes: [], status: code, text: message },
  );
  return new DriverError(
    kind,
    `${place}: server ${server.id} went to ${server.status}: ${message.trim() || "no reason given"} (fault ${code})`,
  );
}
