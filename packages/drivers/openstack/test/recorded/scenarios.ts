import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  type ImageTag,
  type Provider,
  runSteps,
  type Tag,
} from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";
import type { OpenstackProviderConfig } from "../../src/config.ts";
import { openstackConfig } from "../../src/index.ts";

/** What is done with a real cloud when it is recorded, and again with the recording. */
export interface Stage {
  readonly clock: Clock;
  open(config: OpenstackProviderConfig): Promise<Provider>;
  /** Tells the real cloud to fail; nothing for a recording, which has failed already. */
  faults(faults: object): Promise<void>;
}

export const FILE = { path: "/image.raw", size: 4_096, fill: 7 };

const tag: Tag = {
  installation: "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01",
  provider: "recorded",
  pool: "main",
  nodeId: "0000000042",
};

export function configOf(label: object = {}, pool: object = {}): OpenstackProviderConfig {
  const raw = {
    name: tag.provider,
    cloud: "nodeyard",
    "region-name": "RegionOne",
    "cloud-images": [{ name: "fake", "image-name": "nodeyard-fake" }],
    pools: [
      {
        name: "main",
        networks: ["nodeyard"],
        labels: [{ name: "small", "cloud-image": "fake", "flavor-name": "small", ...label }],
        ...pool,
      },
    ],
  };
  const report = ({ message }: { message: string }) => {
    throw new Error(message);
  };
  return openstackConfig.load(raw, { labels: new Set(["small"]), diskimages: new Map(), report })!;
}

function tools(stage: Stage, config: OpenstackProviderConfig, provider: Provider) {
  const steps: string[] = [];
  let externalId: ExternalId | null = null;
  const { signal } = new AbortController();
  const options = () => ({
    clock: stage.clock,
    signal,
    externalId,
    save: async (id: ExternalId) => {
      externalId = id;
    },
    onStep: ({ step }: { step: string }) => void steps.push(step),
  });
  const [pool] = config.pools;
  const order: CreateOrder = {
    tag,
    hostname: `np${tag.nodeId}`,
    pool: pool!,
    label: pool!.labels.get("small")!,
    az: null,
    imageExternalId: null,
    request: {
      id: "100-1",
      labels: ["small"],
      requestor: "zuul",
      requestorData: null,
      relativePriority: 0,
      eventId: null,
      createdTime: null,
      tenantName: "t1",
    },
    attempt: 1,
  };
  return {
    signal,
    steps,
    order,
    options,
    create: () => runSteps((step) => provider.create(order, step), options()),
    remove: () => runSteps((step) => provider.remove(tag, step), options()),
  };
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => "it worked",
    (error: unknown) => (error instanceof DriverError ? [error.kind, error.message] : String(error)),
  );

export const scenarios: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  /** A node's life with a floating IP, and what is seen of it meanwhile. */
  async life(stage) {
    const config = configOf({ "key-name": "nodeyard" });
    const provider = await stage.open(config);
    const { signal, steps, order, create, remove } = tools(stage, config, provider);
    const quota = await provider.quota(signal);
    const need = await provider.need(order.label, signal);
    const zones = await provider.offers!.zones!.list(order.pool, signal);
    const machine = await create();
    const listed = (await provider.list(signal)).filter(({ tag: own }) => own !== null);
    const text = await provider.offers!.console!.read(tag, { signal, externalId: machine.externalId });
    await remove();
    await provider.close();
    return { quota, need, zones, machine, listed, console: (text ?? "").length > 0, steps };
  },

  /** A server whose root disk is a volume, which goes with it. */
  async volume(stage) {
    const config = configOf({ "boot-from-volume": true, "volume-size": 3 }, { "auto-floating-ip": false });
    const provider = await stage.open(config);
    const { create, remove, steps, order, signal } = tools(stage, config, provider);
    const need = await provider.need(order.label, signal);
    await create();
    const listed = (await provider.list(signal)).filter(({ tag: own }) => own !== null);
    await remove();
    const after = (await provider.list(signal)).filter(({ type }) => type === "volume");
    await provider.close();
    return { need, resources: listed.map(({ resources }) => resources), after, steps };
  },

  /** The service refuses a create for the quota. */
  async quota(stage) {
    const config = configOf({ "flavor-name": "toobig" }, { "auto-floating-ip": false });
    const provider = await stage.open(config);
    const { create, remove, steps } = tools(stage, config, provider);
    const refused = await failure(create());
    await remove();
    await provider.close();
    return { refused, steps };
  },

  /** The server is made, and its host fails. */
  async fault(stage) {
    const config = configOf({}, { "auto-floating-ip": false });
    const provider = await stage.open(config);
    const { create, remove, steps } = tools(stage, config, provider);
    await stage.faults({ spawn_error_rate: 1, spawn_error: "disk full" });
    const failed = await failure(create());
    await stage.faults({});
    await remove();
    await provider.close();
    return { failed, steps };
  },

  /** A label whose flavor, image or network the cloud does not have. */
  async missing(stage) {
    const found: unknown[] = [];
    for (const [label, pool] of [
      [{ "flavor-name": "huge" }, {}],
      [{ "min-ram": 999_999 }, {}],
      [{}, { networks: ["elsewhere"] }],
    ] as const) {
      const config = configOf(label, pool);
      const provider = await stage.open(config);
      const { signal, order } = tools(stage, config, provider);
      found.push(await failure(provider.need(order.label, signal)));
      await provider.close();
    }
    return found;
  },

  /** An image goes up, is found when asked for again, and goes. */
  async image(stage) {
    const config = configOf();
    const provider = await stage.open(config);
    const { signal, options, steps } = tools(stage, config, provider);
    const imageTag: ImageTag = {
      installation: tag.installation,
      provider: tag.provider,
      image: "noble",
      buildId: "0000000007",
      uploadId: "0000000001",
    };
    const sent: number[] = [];
    const order = {
      tag: imageTag,
      name: "noble-1",
      file: FILE.path,
      format: "raw",
      size: FILE.size,
      sha256: "d99b89d6e5bc2b6a2a3ee2a3e0ba28e2e9dbfe4b4c3c3c1f1f0b5d1a1f5f2d11",
      md5: "82a3e4e7a2b6e9e2bb3f1f1b3f1c1d1e",
      metadata: { team: "qa" },
      own: null,
      progress: (bytes: number) => void sent.push(bytes),
    };
    const images = provider.offers!.images!;
    const wrong = await failure(runSteps((step) => images.upload(order, step), options()));
    const right = { ...order, md5: MD5 };
    const id = await runSteps((step) => images.upload(right, step), options());
    const again = await runSteps((step) => images.upload(right, step), options());
    const listed = (await provider.list(signal)).filter(({ type }) => type === "image");
    await runSteps((step) => images.remove(imageTag, step), options());
    const after = (await provider.list(signal)).filter(({ type }) => type === "image");
    await provider.close();
    return { formats: images.formats, wrong, same: id === again, sent, listed, after, steps };
  },
};

/** Of FILE.size bytes of FILE.fill. */
const MD5 = "91bba24e9e4912e823c00920ced3e85c";
