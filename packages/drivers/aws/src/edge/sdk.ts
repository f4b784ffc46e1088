/** The SDK's modules. Each is loaded when a provider first calls its service, so that other commands start quickly. */
export const sdk = {
  settings: () => import("./settings.ts"),
  handler: () => import("./handler.ts"),
  credentials: () => import("@aws-sdk/credential-provider-node"),
  ec2: () => import("@aws-sdk/client-ec2"),
  s3: () => import("@aws-sdk/client-s3"),
  ebs: () => import("@aws-sdk/client-ebs"),
  quotas: () => import("@aws-sdk/client-service-quotas"),
  pricing: () => import("@aws-sdk/client-pricing"),
  sqs: () => import("@aws-sdk/client-sqs"),
  ssm: () => import("@aws-sdk/client-ssm"),
};
