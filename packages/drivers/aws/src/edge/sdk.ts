/** The SDK's modules. Each is loaded when a provider first calls its service, so that other commands start quickly. */
export const sdk = {
  settings: () => import("./settings.ts"),
  handler: () => import("./handler.ts"),
  credentials: () => import("@aws-sdk/credential-provider-node"),
  ec2: async () => (await import("@aws-sdk/client-ec2")).EC2,
  s3: async () => (await import("@aws-sdk/client-s3")).S3,
  ebs: async () => (await import("@aws-sdk/client-ebs")).EBS,
  quotas: async () => (await import("@aws-sdk/client-service-quotas")).ServiceQuotas,
  pricing: async () => (await import("@aws-sdk/client-pricing")).Pricing,
  sqs: async () => (await import("@aws-sdk/client-sqs")).SQS,
  ssm: async () => (await import("@aws-sdk/client-ssm")).SSM,
};
