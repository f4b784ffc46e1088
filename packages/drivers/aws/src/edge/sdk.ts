/** The region and profile of calls: the provider's own, else those of variables; then keys of variables go before the profile's. */
function placeOf(
  { region, profile }: { readonly region: string | null; readonly profile: string | null },
  env = process.env,
) {
  const named = profile ?? (env.AWS_DEFAULT_PROFILE || env.AWS_PROFILE || null);
  const hasKeys = Boolean(env.AWS_ACCESS_KEY_ID && env.AWS_SECRET_ACCESS_KEY);
  return {
    /** Null: that of the profile, or of AWS_REGION. */
    region: region ?? (env.AWS_DEFAULT_REGION || null),
    /** Null: the SDK's chain (environment, files, container, instance). Assumed roles and web identities come from the profile or the chain. */
    profile: named,
    /** Keys in variables, which sign although the profile has some. */
    keysOfEnvironment: profile === null && hasKeys,
  };
}

/** The SDK's modules. Each is loaded when a provider first calls its service, so that other commands start quickly. */
export const sdk = {
  placeOf,
  connectionOf: async (...how: Parameters<typeof import("./http.ts")["connectionOf"]>) =>
    (await import("./http.ts")).connectionOf(...how),
  credentials: () => import("@aws-sdk/credential-provider-node"),
  ec2: async () => (await import("@aws-sdk/client-ec2")).EC2,
  s3: async () => (await import("@aws-sdk/client-s3")).S3,
  ebs: async () => (await import("@aws-sdk/client-ebs")).EBS,
  quotas: async () => (await import("@aws-sdk/client-service-quotas")).ServiceQuotas,
  pricing: async () => (await import("@aws-sdk/client-pricing")).Pricing,
  sqs: async () => (await import("@aws-sdk/client-sqs")).SQS,
  ssm: async () => (await import("@aws-sdk/client-ssm")).SSM,
};
