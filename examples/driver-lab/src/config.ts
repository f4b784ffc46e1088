import {
  ABSOLUTE,
  commonOf,
  compileLabels,
  compilePools,
  driverConfig,
  entries,
  group,
  integer,
  launchKeys,
  NO_LIMIT,
  type PoolConfig,
  type ProviderConfig,
  poolKeys,
  section,
  text,
  type Values,
} from "@nodeyard/driver";

const ownTable = {
  // Providers with the same folder share its boards and its limit.
  folder: text("Absolute path of the folder that holds the boards.", { needed: true, like: ABSOLUTE }),
  "max-boards": integer("Boards at once in the folder, of all providers.", NO_LIMIT),
};

const labelTable = {
  name: text("A top-level label.", { needed: true }),
  greeting: text("Greeting that a board sends to each client.", { shown: "the label's name" }),
};

const table = {
  own: group(ownTable),
  ...launchKeys({
    launch: 30,
    launched: "From the start of a launch to a board.",
    boot: 10,
    booted: "For a board to answer once it runs.",
  }),
  pools: entries(
    section({ ...poolKeys({}), labels: entries(section(labelTable), "What the pool offers.") }),
    "Groups of labels.",
  ),
};

export type LabProviderOwn = Values<typeof ownTable>;
export interface LabLabelOwn {
  readonly greeting: string;
}
export type LabPoolConfig = PoolConfig<undefined, LabLabelOwn>;
export type LabProviderConfig = ProviderConfig<LabProviderOwn, undefined, LabLabelOwn>;

// No SSH there: the launcher tries the port that the machine names, and asks for no host key.
const CONNECTION = { username: null, pythonPath: null, shellType: null, type: "raw", port: 0 };

export const labConfig = driverConfig("lab", table, (provider, context): LabProviderConfig => {
  const pools = compilePools(provider, (pool) => ({
    labels: compileLabels(pool, context, ({ name, greeting }) => ({
      hostKeyChecking: true,
      connection: CONNECTION,
      image: null,
      own: { greeting: greeting ?? name },
    })),
    own: undefined,
  }));
  return { ...commonOf(provider), pools, own: provider.own };
});
