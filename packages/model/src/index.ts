export {
  type BootTally,
  CANARIES,
  type Canary,
  type CanaryEnd,
  canaryImage,
  canaryPath,
  decodeCanary,
  encodeCanary,
  noBoots,
  withBoot,
} from "./canary.ts";
export {
  type ComponentRecord,
  type ComponentState,
  changeComponent,
  componentStates,
  decodeComponent,
  encodeComponent,
  launcherPoolId,
  type NewComponent,
  newComponent,
} from "./component.ts";
export {
  DEAD_LETTERS,
  type DeadLetter,
  deadLetterPath,
  decodeDeadLetter,
  encodeDeadLetter,
} from "./dead-letter.ts";
export { RecordError, type RecordErrorCode } from "./errors.ts";
export {
  BREAKERS,
  BUDGETS,
  decodeFailures,
  decodeProbe,
  encodeFailures,
  encodeProbe,
  type FailureRecord,
  type FailureScope,
  failureKey,
  failurePath,
  labelKey,
  type Offering,
  offeringKey,
  probePath,
  subjectOf,
} from "./failure-record.ts";
export {
  changeImageBuild,
  changeImageUpload,
  decodeImageBuild,
  decodeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  type ImageBuildFields,
  type ImageBuildPatch,
  type ImageBuildRecord,
  type ImageBuildState,
  type ImageUploadFields,
  type ImageUploadPatch,
  type ImageUploadRecord,
  type ImageUploadState,
  imageBuildStates,
  imageUploadStates,
  newImageBuild,
  newImageUpload,
} from "./images.ts";
export { splice } from "./json/splice.ts";
export {
  decodeLease,
  encodeLease,
  LEASES,
  type Lease,
  type LeaseState,
  leaseIdOf,
  leasePath,
  leaseRequestor,
} from "./lease.ts";
export {
  changeNode,
  decodeNode,
  encodeNode,
  type NewNode,
  type NodeFields,
  type NodePatch,
  type NodeRecord,
  newNode,
  readableNode,
} from "./node.ts";
export { paths } from "./paths.ts";
export {
  changeRequest,
  decodeRequest,
  encodeRequest,
  type NewRequest,
  newRequest,
  type RequestFields,
  type RequestPatch,
  type RequestRecord,
} from "./request.ts";
export { compareRequestIds, compareRequests, parseRequestId, type RequestId } from "./request-id.ts";
export {
  mayGo,
  type NodeState,
  nodeStates,
  nodeTransitions,
  type RequestState,
  requestStates,
  requestTransitions,
  type Transition,
} from "./states.ts";
