import { CALLS, type Call } from "@nodeyard/driver-aws";

/**
 * Actions of calls that have another name than the call, or ask for more than one
 * (https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html).
 */
const ACTIONS: Partial<Record<Call, readonly string[]>> = {
  "quotas.listServiceQuotas": ["servicequotas:ListServiceQuotas"],
  "sqs.deleteMessageBatch": ["sqs:DeleteMessage"],
  // The object is tagged as it is made.
  "s3.createMultipartUpload": ["s3:PutObject", "s3:PutObjectTagging"],
  "s3.uploadPart": ["s3:PutObject"],
  "s3.completeMultipartUpload": ["s3:PutObject"],
  "s3.listMultipartUploads": ["s3:ListBucketMultipartUploads"],
  "s3.listParts": ["s3:ListMultipartUploadParts"],
  "s3.listObjectsV2": ["s3:ListBucket"],
};

/** What a statement of those actions is about; EC2's listings and most of its calls know no narrower one than all. */
const RESOURCES: readonly (readonly [prefix: string, resources: readonly string[]])[] = [
  ["s3:", ["arn:aws:s3:::BUCKET", "arn:aws:s3:::BUCKET/*"]],
  ["sqs:", ["arn:aws:sqs:REGION:ACCOUNT:QUEUE"]],
  ["ssm:", ["arn:aws:ssm:REGION:ACCOUNT:parameter/*", "arn:aws:ssm:REGION::parameter/aws/service/*"]],
  ["", ["*"]],
];

interface Statement {
  readonly Sid: string;
  readonly Effect: "Allow";
  readonly Action: readonly string[];
  readonly Resource: readonly string[];
}

/** `docs/reference/aws-policy.json`: the rights that the driver needs, a statement for each of its features. */
export function awsPolicy(): string {
  const statements = Object.entries(CALLS).flatMap(([feature, calls]) => statementsOf(feature, calls));
  // RunInstances and launch templates hand the role of `iam-instance-profile` on; no call of the driver has that name.
  statements.push({
    Sid: "InstanceProfiles",
    Effect: "Allow",
    Action: ["iam:PassRole"],
    Resource: ["arn:aws:iam::ACCOUNT:role/ROLE"],
  });
  return `${JSON.stringify({ Version: "2012-10-17", Statement: statements }, null, 2)}\n`;
}

function statementsOf(feature: string, calls: readonly Call[]): Statement[] {
  const actions = [...new Set(calls.flatMap((call) => ACTIONS[call] ?? [actionOf(call)]))].sort();
  const groups = Map.groupBy(actions, (action) => RESOURCES.find(([prefix]) => action.startsWith(prefix))!);
  return [...groups].map(([[prefix, Resource], Action]) => ({
    Sid: groups.size > 1 && prefix !== "" ? `${feature}${prefix.slice(0, -1).toUpperCase()}` : feature,
    Effect: "Allow",
    Action,
    Resource,
  }));
}

function actionOf(call: Call): string {
  const [service, name] = call.split(".") as [string, string];
  return `${service}:${name[0]!.toUpperCase()}${name.slice(1)}`;
}
