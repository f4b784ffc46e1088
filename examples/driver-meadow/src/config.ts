import {
  ABSOLUTE,
  cloudKeys,
  commonOf,
  compileCloudPools,
  compileImages,
  driverConfig,
  flag,
  type ProviderConfig,
  text,
} from "@nodeyard/driver";

const label = { address: flag("Machines get a public address.", { default: false }) };

const table = {
  endpoint: text("Address of the cloud's API.", { needed: true }),
  "token-file": text("File with the token of the account.", { needed: true, like: ABSOLUTE }).names("file"),
  ...cloudKeys({ pool: {}, label, diskimage: {}, cloudImage: {} }),
};

export interface MeadowLabelOwn {
  readonly size: string | null;
  readonly minRam: number;
  readonly address: boolean;
  /** Of the cloud; null: the label's uploaded image. */
  readonly cloudImage: string | null;
}
export interface MeadowProviderOwn {
  readonly endpoint: string;
  readonly tokenFile: string;
  readonly uploadMs: number;
}
export type MeadowProviderConfig = ProviderConfig<MeadowProviderOwn, object, MeadowLabelOwn>;

export const meadowConfig = driverConfig("meadow", table, (provider, context): MeadowProviderConfig => {
  const lists = compileImages(provider, context, {
    diskimage: (): string | null => null,
    cloudImage: ({ imageId, imageName }, name): string | null => imageId ?? imageName ?? name,
  });
  const { endpoint, tokenFile, imageUploadTimeoutMs: uploadMs } = provider;
  return {
    ...commonOf(provider),
    pools: compileCloudPools(provider, { lists, none: null }, context, (one, cloudImage): MeadowLabelOwn => {
      return { size: one.flavorName, minRam: one.minRam, address: one.own.address, cloudImage };
    }),
    own: { endpoint, tokenFile, uploadMs },
  };
});
