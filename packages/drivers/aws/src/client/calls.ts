import type { sdk } from "../edge/sdk.ts";

/** Every call of the driver by purpose, as `service.operation` of Amazon's SDK; the policy in docs/reference/aws-policy.json is made of this list. */
export const CALLS = {
  // Each group becomes statements of the policy, so that an operator can leave out the features that are not used.
  Machines: [
    "ec2.runInstances",
    "ec2.terminateInstances",
    "ec2.createTags",
    "ec2.describeInstances",
    "ec2.getConsoleOutput",
    "ec2.describeInstanceTypes",
    "ec2.describeImages",
    "ec2.describeSubnets",
  ],
  SuspendedSpares: ["ec2.stopInstances", "ec2.startInstances"],
  Leaks: [
    "ec2.describeVolumes",
    "ec2.deleteVolume",
    "ec2.describeHosts",
    "ec2.describeNetworkInterfaces",
    "ec2.deleteNetworkInterface",
    "ec2.describeLaunchTemplates",
    "ec2.deleteLaunchTemplate",
    "ec2.describeSnapshots",
  ],
  Quotas: ["quotas.listServiceQuotas"],
  Fleets: ["ec2.createFleet", "ec2.createLaunchTemplate"],
  DedicatedHosts: ["ec2.allocateHosts", "ec2.releaseHosts"],
  Notices: ["sqs.receiveMessage", "sqs.deleteMessageBatch"],
  SpotNotices: ["ec2.describeSpotInstanceRequests"],
  Prices: ["pricing.getProducts", "ec2.describeSpotPriceHistory"],
  ImageParameters: ["ssm.getParameter"],
  Images: [
    "ec2.registerImage",
    "ec2.deregisterImage",
    "ec2.deleteSnapshot",
    "ec2.copyImage",
    "ec2.modifyImageAttribute",
    "ec2.enableImageDeprecation",
  ],
  ImagesByEbsDirect: ["ebs.startSnapshot", "ebs.putSnapshotBlock", "ebs.completeSnapshot"],
  ImagesByBucket: [
    "ec2.importSnapshot",
    "ec2.importImage",
    "ec2.cancelImportTask",
    "ec2.describeImportSnapshotTasks",
    "ec2.describeImportImageTasks",
    "s3.createMultipartUpload",
    "s3.uploadPart",
    "s3.completeMultipartUpload",
    "s3.abortMultipartUpload",
    "s3.listMultipartUploads",
    "s3.listParts",
    "s3.getObjectTagging",
    "s3.deleteObject",
    "s3.listObjectsV2",
  ],
} as const;

/** The name of one call, such as `ec2.runInstances`. */
export type Call = (typeof CALLS)[keyof typeof CALLS][number];

/** Name of a service in calls. */
export type Service = Exclude<keyof typeof sdk, "placeOf" | "connectionOf" | "credentials">;
/** The SDK's client of a service. */
export type Client<S extends Service> = InstanceType<Awaited<ReturnType<(typeof sdk)[S]>>>;

/** Request and answer of a method of a client, which the SDK declares with promises and, last, with a callback. */
type Shape<Method> = Method extends (
  input: infer In,
  options: never,
  done: (error: never, out?: infer Out) => void,
) => void
  ? readonly [In, Out]
  : never;
type ShapeOf<C extends Call> = C extends `${infer S extends Service}.${infer Name}`
  ? Shape<Client<S>[Name & keyof Client<S>]>
  : never;

/** The request of a call. */
export type Input<C extends Call> = ShapeOf<C>[0];
/** The answer of a call. */
export type Output<C extends Call> = ShapeOf<C>[1];
/** The items of a list in an answer. */
export type Items<List> = NonNullable<List> extends readonly (infer Item)[] ? Item : never;
