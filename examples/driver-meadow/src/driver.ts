import {
  CALL_MS,
  type Clock,
  type Cloud,
  type CloudHost,
  cloudDriver,
  type Driver,
  DriverError,
  errorMap,
  imageMetadata,
  imageSteps,
  imageTagOf,
  type MachineTable,
  machineMetadata,
  orThrow,
  type Piece,
  SharedValue,
  sameNode,
  secretText,
  sentPieces,
  tagKey,
  tagOf,
  unlessRefused,
} from "@nodeyard/driver";
import { MeadowApi, type Thing } from "./api.ts";
import { type MeadowOrder, type MeadowProviderConfig, meadowConfig } from "./config.ts";

type MeadowLabel = MeadowOrder["label"];

const mapError = errorMap([
  { kind: "quota", codes: ["quota"] },
  { kind: "capacity", codes: ["full"] },
  { kind: "access", statuses: [401], remedy: "check the file of token-file" },
]);

/** Bytes of an image in one call. */
const PIECE = 1 << 20;

/** Makes the driver for a host. Providers with one token share connections. */
export function createMeadowDriver({ around, connect, openFile }: CloudHost): Driver<MeadowProviderConfig> {
  const parts = { name: "meadow", config: meadowConfig, mapError };
  return cloudDriver<MeadowProviderConfig, MeadowApi, Thing>(parts, (config, context) => {
    const { endpoint, tokenFile } = config.own;
    const readToken = () => secretText(tokenFile, around.read);
    return {
      key: JSON.stringify([endpoint, tokenFile]),
      account: () => new MeadowApi(endpoint, readToken, { ...context, ...connect() }),
      cloud: (api) => meadow(config, context.clock, api, openFile),
    };
  });
}

/** What the cloud says of itself. */
function meadow(
  { own: { endpoint, imageUploadTimeoutMs: uploadMs } }: MeadowProviderConfig,
  clock: Clock,
  api: MeadowApi,
  openFile: CloudHost["openFile"],
): Cloud<Thing, undefined, MachineTable<Thing>> {
  const sizes = new SharedValue({
    ...{ clock, what: "list of sizes", freshMs: 300_000, staleMs: 600_000 },
    load: (signal) => api.list<{ name: string; cores: number; ram: number }>("sizes", signal),
  });
  const sizeOf = async (label: MeadowLabel, signal: AbortSignal) => {
    const { flavorName: size, minRam } = label.own;
    const all = await sizes.get(signal);
    const found = all.find((one) => one.ram >= minRam && (size === null || one.name === size));
    return orThrow(found, `label ${label.name}: no size fits`);
  };

  return {
    machines: {
      watch: { list: (signal) => api.list("machines", signal) },
      idOf: ({ id }) => id,
      idIn: (id) => (typeof id === "string" ? id : undefined),
      metadataOf: ({ labels }) => labels,
      isUp: ({ state }) => state === "running",
      hasFailed: ({ state }) => state === "failed",
      failure: ({ id }, place) => new DriverError("transient", `${place}: machine ${id} failed`),
      isLeaving: ({ state }) => state === "stopping",
      delete: (id, signal) => api.delete(`/machines/${id}`, signal),
      read: (id, signal) => unlessRefused(api.call("GET", `/machines/${id}`, signal)),
    },
    async make({ tag, label, hostname, az, imageExternalId }: MeadowOrder, _, signal) {
      const { name: size } = await sizeOf(label, signal);
      const image = imageExternalId ?? label.own.cloudImage;
      // The token makes a call whose answer was lost return the same machine.
      const labels = machineMetadata(tag);
      const order = { name: hostname, size, zone: az, image, labels, token: tagKey(tag) };
      return async (until) => (await api.call("POST", "/machines", until, order)).id;
    },
    async *expose({ tag, label }: MeadowOrder, { id: machine }, signal) {
      if (!label.own.address) return null;
      yield { step: "address", deadlineMs: CALL_MS };
      const order = { machine, labels: machineMetadata(tag), token: tagKey(tag) };
      return (await api.call("POST", "/addresses", signal, order)).host;
    },
    describe: ({ hostname }, { host, port, zone }, address) => ({
      ...{ hostname, publicIpv4: address, privateIpv4: host, az: zone },
      connection: { type: "raw", port },
    }),
    async *last(tag, { signal }) {
      yield { step: "address", deadlineMs: CALL_MS };
      for (const { id, labels } of await api.list("addresses", signal))
        if (sameNode(tagOf(labels), tag)) await api.delete(`/addresses/${id}`, signal);
    },
    parts: {
      address: {
        list: async (signal) =>
          (await api.list("addresses", signal)).map(({ id, machine, labels }) => ({
            ...{ id, on: [machine], tag: tagOf(labels), resources: { addresses: 1 } },
          })),
        delete: (id, signal) => api.delete(`/addresses/${id}`, signal),
      },
      image: {
        list: async (signal) =>
          (await api.list("images", signal)).map(({ id, labels }) => ({ id, imageTag: imageTagOf(labels) })),
        delete: (id, signal) => api.delete(`/images/${id}`, signal),
      },
    },
    async amounts({ size }, signal) {
      const { cores = 0, ram = 0 } = (await sizes.get(signal)).find(({ name }) => name === size) ?? {};
      return { instances: 1, cores, ram };
    },
    quota: (signal) => api.call<Record<string, number>>("GET", "/quota", signal),
    async need(label: MeadowLabel, signal) {
      const { cores, ram } = await sizeOf(label, signal);
      return { instances: 1, cores, ram, ...(label.own.address && { addresses: 1 }) };
    },
    console: async (id, signal) =>
      (await unlessRefused(api.call<{ text: string }>("GET", `/machines/${id}/console`, signal)))?.text ??
      null,
    zones: (_, signal) => api.list<string>("zones", signal),
    images: imageSteps<Thing>({
      ...{ clock, uploadMs, formats: ["raw"] },
      idOf: ({ id }) => id,
      metadataOf: ({ labels }) => labels,
      find: (_, signal) => api.list("images", signal),
      read: (id, signal) => unlessRefused(api.call("GET", `/images/${id}`, signal)),
      stateOf: ({ state, sha256 }, { file, sha256: wanted }) =>
        state === "ready" && sha256 !== wanted ? `has another checksum than ${file} has` : state,
      async create({ name, size, tag, metadata }, signal) {
        const order = { name, size, labels: { ...metadata, ...imageMetadata(tag) } };
        return (await api.call("POST", "/images", signal, order)).id;
      },
      send(id, order, from, signal) {
        const send = async ({ index, bytes }: Piece) => {
          const data = Buffer.from(bytes).toString("base64");
          await api.call("PUT", `/images/${id}/data`, signal, { at: index * PIECE, data });
        };
        return sentPieces({ openFile, order, from, length: PIECE, send });
      },
      delete: (id, signal) => api.delete(`/images/${id}`, signal),
    }),
    place: () => ({ cloud: new URL(endpoint).host }),
    check: async (signal) => void (await sizes.get(signal)),
    close: () => sizes.close(),
  };
}
