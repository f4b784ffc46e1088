import { type ConfigOf, cloudConfig, Is, Key, type OwnOf } from "@nodeyard/driver";

const provider = {
  // Providers with the same folder share its boards and its limit.
  folder: Key.text("Absolute path of the folder that holds the boards.", { needed: true, like: Is.ABSOLUTE }),
  "max-boards": Key.integer("Boards at once in the folder, of all providers.", Key.NO_LIMIT),
  ...Key.launchKeys({
    launch: 30,
    launched: "From the start of a launch to a board.",
    boot: 10,
    booted: "For a board to answer once it runs.",
  }),
};

const label = {
  greeting: Key.text("Greeting that a board sends to each client.", { shown: "the label's name" }),
};

// No SSH there: the launcher tries the port that the machine names, and asks for no host key.
const connection = { username: null, pythonPath: null, shellType: null, type: "raw", port: 0 };

export const labConfig = cloudConfig(
  "lab",
  { provider, pool: {}, label },
  { label: ({ name, greeting }) => ({ connection, own: { greeting: greeting ?? name } }) },
);

export type LabProviderConfig = ConfigOf<typeof labConfig>;
export type LabPoolConfig = LabProviderConfig["pools"][number];
export type LabProviderOwn = OwnOf<typeof labConfig, "provider">;
export type LabLabelOwn = OwnOf<typeof labConfig, "label">;
