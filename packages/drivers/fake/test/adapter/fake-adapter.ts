import {
  type Adapter,
  type AdapterContext,
  type AdapterResource,
  DriverError,
  type ExternalId,
  type ImageOrder,
  type ImageTag,
  type Instance,
  imageTagOf,
  type MachineOrder,
  type Metadata,
  type Resources,
  type StateMachine,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { CloudError } from "../../src/cloud/errors.ts";
import type { FakeServer } from "../../src/cloud/servers.ts";
import type { FakeCloud } from "../../src/index.ts";

/** The fake cloud behind the old framework's interface, written as its drivers are. */
export class FakeAdapter implements Adapter {
  readonly #cloud: FakeCloud;
  readonly #context: AdapterContext;
  readonly resumeMachine?: NonNullable<Adapter["resumeMachine"]>;

  constructor(cloud: FakeCloud, context: AdapterContext, resumes: boolean) {
    this.#cloud = cloud;
    this.#context = context;
    if (resumes) {
      this.resumeMachine = (_order, externalId) => new CreateMachine(cloud, undefined, String(externalId));
    }
  }

  place() {
    return { cloud: String(this.#cloud.knobs.seed) };
  }

  createMachine(order: MachineOrder): StateMachine<Instance> {
    return new CreateMachine(this.#cloud, order, null);
  }

  deleteMachine(externalId: ExternalId): StateMachine<void> {
    return new DeleteMachine(this.#cloud, externalId);
  }

  async listInstances(signal: AbortSignal): Promise<readonly Instance[]> {
    await this.#context.limiter.turn(signal);
    const { servers } = await this.#cloud.listAll(signal);
    return servers.map((server) => instanceOf(this.#cloud, server));
  }

  async listResources(signal: AbortSignal): Promise<readonly AdapterResource[]> {
    const { images } = await this.#cloud.listAll(signal);
    return images.map(({ id, tag }) => {
      return { type: "image", id, metadata: tag === null ? {} : imageMetadataOf(tag) };
    });
  }

  async deleteResource({ type, id }: AdapterResource, signal: AbortSignal): Promise<void> {
    if (type === "image") await this.deleteImage(id, signal);
  }

  async zones(): Promise<readonly string[]> {
    return this.#cloud.knobs.availabilityZones;
  }

  async consoleLog(externalId: ExternalId, signal: AbortSignal): Promise<string | null> {
    const server = await this.#cloud.get(String(externalId), signal);
    return server === undefined || this.#cloud.status(server) === "DELETED" ? null : `Booting ${server.name}`;
  }

  async uploadImage({ name, metadata, ...order }: ImageOrder, signal: AbortSignal): Promise<ExternalId> {
    const { size, sha256 } = order;
    const { id } = await this.#cloud.createImage({ name, tag: imageTagOf(metadata) }, signal);
    await this.#cloud.fillImage(id, { size, sha256 }, signal);
    order.progress(size);
    return id;
  }

  async deleteImage(externalId: ExternalId, signal: AbortSignal): Promise<void> {
    try {
      await this.#cloud.deleteImage(String(externalId), signal);
    } catch (error) {
      if (!(error instanceof CloudError) || error.status !== 404) throw error;
    }
  }

  async quotaLimits(): Promise<Resources> {
    return { instances: this.#cloud.knobs.quota.instances ?? Number.POSITIVE_INFINITY };
  }
}

class CreateMachine implements StateMachine<Instance> {
  state = "start";
  externalId: ExternalId | null;
  complete = false;
  readonly #cloud: FakeCloud;
  readonly #order: MachineOrder | undefined;

  constructor(cloud: FakeCloud, order: MachineOrder | undefined, externalId: string | null) {
    this.#cloud = cloud;
    this.#order = order;
    this.externalId = externalId;
    if (externalId !== null) this.state = "building";
  }

  async advance(signal: AbortSignal): Promise<Instance | undefined> {
    if (this.state === "start") {
      const server = await this.#cloud.create(newServer(this.#order!), signal);
      this.externalId = server.id;
      this.state = "building";
      return undefined;
    }
    const server = await this.#cloud.get(String(this.externalId), signal);
    if (server === undefined) throw new CloudError(404, `server ${this.externalId} is gone`);
    const status = this.#cloud.status(server);
    if (status === "DELETED") throw new CloudError(404, `server ${server.id} is deleted`);
    if (status === "ERROR") throw new CloudError(500, `server ${server.id} went to ERROR`);
    if (status !== "ACTIVE") return undefined;
    this.state = "complete";
    this.complete = true;
    return instanceOf(this.#cloud, server);
  }
}

class DeleteMachine implements StateMachine<void> {
  state = "deleting";
  complete = false;
  readonly externalId: ExternalId;
  readonly #cloud: FakeCloud;

  constructor(cloud: FakeCloud, externalId: ExternalId) {
    this.#cloud = cloud;
    this.externalId = externalId;
  }

  async advance(signal: AbortSignal): Promise<undefined> {
    const id = typeof this.externalId === "string" ? this.externalId : String(this.externalId.id);
    const server = await this.#cloud.get(id, signal);
    if (server !== undefined && this.#cloud.status(server) !== "DELETED")
      await this.#cloud.delete(id, signal);
    else this.complete = true;
  }
}

function newServer(order: MachineOrder) {
  return {
    name: order.hostname,
    tag: tagOf(order.metadata),
    az: order.az,
    resources: { instances: 1 },
    networks: [],
    imageProperties: {},
  };
}

function instanceOf(cloud: FakeCloud, server: FakeServer): Instance {
  const status = cloud.status(server);
  return {
    externalId: server.id,
    metadata: server.tag === null ? {} : metadataOf(server.tag),
    ready: status === "ACTIVE",
    failed: status === "ERROR",
    deleted: status === "DELETED",
    quota: server.resources,
    interfaceIp: "198.18.0.1",
    az: server.az,
    hostKeys: [],
  };
}

/** As the cloud would have stored what it was given. */
function metadataOf({ installation, provider, pool, nodeId }: Tag): Metadata {
  return {
    nodeyard_installation: installation,
    nodepool_provider_name: provider,
    nodepool_pool_name: pool,
    nodepool_node_id: nodeId,
  };
}

function imageMetadataOf({ installation, provider, image, buildId, uploadId }: ImageTag): Metadata {
  return {
    nodeyard_installation: installation,
    nodepool_provider_name: provider,
    nodeyard_image: image,
    nodepool_build_id: buildId,
    nodepool_upload_id: uploadId,
  };
}

const KINDS = {
  400: "configuration",
  401: "access",
  403: "quota",
  404: "not-found",
  500: "transient",
  503: "capacity",
} as const;

export function mapError(error: unknown, place: string): DriverError {
  if (!(error instanceof CloudError)) return new DriverError("fatal", `${place}: ${error}`, { cause: error });
  return new DriverError(KINDS[error.status], `${place}: ${error.message}`, { cause: error });
}
