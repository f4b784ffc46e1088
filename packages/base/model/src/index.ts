export * from "./audit.ts";
export * from "./canary.ts";
export * from "./component.ts";
export * from "./dead-letter.ts";
export { RecordError, type RecordErrorCode, readable } from "./errors.ts";
export * from "./failure-record.ts";
export * from "./host-claim.ts";
export * from "./images.ts";
export { ObjectText } from "./json/object-text.ts";
export { parseObject } from "./json/parse.ts";
export * from "./lease.ts";
export {
  type Claim,
  type ClaimOrigin,
  decodeLogin,
  encodeLogin,
  LOGINS,
  type Login,
  type LoginKind,
  loginPath,
} from "./login.ts";
export * from "./node.ts";
export * from "./paths.ts";
export * from "./place.ts";
export * from "./price.ts";
export * from "./remark.ts";
export * from "./request.ts";
export * from "./request-id.ts";
export * from "./returned.ts";
export * from "./reuse.ts";
export * from "./slots.ts";
export * from "./spending.ts";
export {
  decodeStandings,
  encodeStandings,
  firstLine,
  type PoolOffer,
  STANDINGS,
  type StandingFact,
  type StandingKind,
  type StandingReport,
  type StandingState,
  severity,
  standingFact,
  standingKinds,
  standingPath,
  standingStates,
} from "./standing.ts";
export { type Standing, type StandingFacts, standingsOf } from "./standings-of.ts";
export * from "./states.ts";
export * from "./token.ts";
