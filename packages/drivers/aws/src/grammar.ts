import { type Grammar, Is, Key } from "@nodeyard/driver";

/** What AWS takes, by its API references of EC2, IAM, S3, SQS and Systems Manager. Ids are judged by their start alone. */

const idOf = (start: string, what: string) =>
  Is.pattern(`the id of ${what}, ${start}-...`, new RegExp(`^${start}-[0-9a-zA-Z-]+$`), [
    [`${start}-0a1b2c3d`],
    ["default", `${start}-`, `${start}-1 `],
  ]);
export const IMAGE = idOf("ami", "an image");
export const SUBNET = idOf("subnet", "a subnet");
export const SECURITY_GROUP = idOf("sg", "a security group");
export const INSTANCE_TYPE = Is.asIn(
  "an instance type",
  ["t3.medium", "u-6tb1.metal"],
  /^[a-z0-9-]+\.[a-z0-9-]+$/,
  ["t3", "t3 medium", ""],
);
export const REGION = Is.asIn("a region", "eu-central-1", /^[a-zA-Z0-9-]+$/, ["eu central", ""]);
export const ZONE = Is.asIn("a zone", "eu-central-1a", /^[a-zA-Z0-9-]+$/, ["a, b", ""]);
export const BUCKET = Is.pattern("the name of a bucket", /^[a-zA-Z0-9._-]{3,255}$/, [
  ["ci-images"],
  ["s3://ci-images", "ab"],
]);
export const QUEUE = Is.textLike(
  "the URL of a queue, as in https://sqs.eu-central-1.amazonaws.com/123456789012/spot",
  (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? "") && URL.parse(text)!.pathname.length > 1,
  [
    ["https://sqs.eu-central-1.amazonaws.com/123456789012/q"],
    ["q", "arn:aws:sqs:eu-central-1:123456789012:q", "https://sqs"],
  ],
);
export const ACCOUNT = Is.pattern("an account of 12 digits", /^\d{12}$/, [
  ["123456789012"],
  ["1234", "self"],
]);
export const OWNER = Is.pattern(
  "an account of 12 digits, self, amazon or aws-marketplace",
  /^(\d{12}|self|amazon|aws-marketplace|aws-backup-vault)$/,
  [
    ["self", "123456789012"],
    ["me", "1234"],
  ],
);
export const PARAMETER = Is.pattern("the name or ARN of a parameter", /^[a-zA-Z0-9_./:-]+$/, [
  ["/aws/service/debian/release/12/latest/amd64"],
  ["a b", ""],
]);
export const PROFILE = Is.pattern("the name of an instance profile", /^[a-zA-Z0-9+=,.@_-]{1,128}$/, [
  ["ci"],
  ["arn:x", ""],
]);
export const PROFILE_ARN = Is.pattern(
  "the ARN of an instance profile",
  /^arn:[a-z-]+:iam::\d{12}:instance-profile\/.+$/,
  [["arn:aws:iam::123456789012:instance-profile/ci"], ["ci", "arn:aws:iam::123456789012:role/ci"]],
);
export const NAME_OR_ARN: Grammar = {
  write: "a name or an arn",
  holds: (value) => Object.values(Object(value)).some((one) => one !== null),
  right: [{ name: "ci" }],
  wrong: [{}, { name: null }],
};
export const ARCHITECTURE = Is.among(
  ["x86_64", "arm64", "i386", "x86_64_mac", "arm64_mac"],
  "amd64",
  "aarch64",
);
export const USER_DATA = Is.bytes(16_384);
export const TAGS = Key.tagGrammar(
  Is.pattern("1 to 128 characters, not aws: at the start", /^(?![aA][wW][sS]:)[\s\S]{1,128}$/, [
    ["ci/owner"],
    ["aws:x", ""],
  ]),
);

/** Root volumes: st1 and sc1 cannot boot. */
export const VOLUME_TYPE = Is.among(["gp3", "gp2", "io1", "io2", "standard"], "gp9", "st1");
export const VOLUME_SIZE = Is.whole(1, 65_536);
export const IOPS = Is.whole(100, 256_000);
export const THROUGHPUT = Is.whole(125, 2_000);
