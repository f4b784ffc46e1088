import { type ConfigOf, cloudConfig, Is, Key, type OrderOf } from "@nodeyard/driver";

const provider = {
  endpoint: Key.text("Address of the cloud's API.", { needed: true }),
  "token-file": Key.text("File with the account's token.", { needed: true, like: Is.ABSOLUTE }).names("file"),
};

const label = { address: Key.flag("Machines get a public address.", { default: false }) };

export const meadowConfig = cloudConfig(
  "meadow",
  Key.flavorCloud({ provider, pool: {}, label, diskimage: {}, cloudImage: {} }),
  {
    // Null: the label's uploaded image.
    images: {
      none: { cloudImage: null as string | null },
      cloudImage: ({ imageId, imageName }, name) => ({ cloudImage: imageId ?? imageName ?? name }),
    },
  },
);

export type MeadowProviderConfig = ConfigOf<typeof meadowConfig>;
export type MeadowOrder = OrderOf<typeof meadowConfig>;
