import type { Tag } from "@nodeyard/driver";
import { FakeCloud } from "@nodeyard/driver-fake";

type Server = Awaited<ReturnType<FakeCloud["create"]>>;
type Order = Parameters<FakeCloud["create"]>[0];

const keyOf = ({ installation, provider, nodeId }: Tag) => `${installation} ${provider} ${nodeId}`;

/** A cloud whose machines can be tagged after they were made. */
export class TaggableCloud extends FakeCloud {
  readonly #tags = new Map<string, Tag>();

  async tag(id: string, tag: Tag): Promise<void> {
    this.#tags.set(id, tag);
  }

  override async get(id: string, signal: AbortSignal): Promise<Server | undefined> {
    const found = await super.get(id, signal);
    return found && this.#tagged(found);
  }

  override async findByTag(tag: Tag, signal: AbortSignal): Promise<Server | undefined> {
    const listed = await this.list(signal);
    return listed.find((server) => server.tag !== null && keyOf(server.tag) === keyOf(tag));
  }

  override async list(signal: AbortSignal): Promise<readonly Server[]> {
    return (await super.list(signal)).map((server) => this.#tagged(server));
  }

  override inspect(): readonly Server[] {
    return super.inspect().map((server) => this.#tagged(server));
  }

  #tagged(server: Server): Server {
    return { ...server, tag: server.tag ?? this.#tags.get(server.id) ?? null };
  }
}

/** The cloud as a process of a build without intent uses it: whose a machine is, is said once it is there. */
export function tagsLate(cloud: TaggableCloud): TaggableCloud {
  return new Proxy(cloud, {
    get(target, name) {
      if (name !== "create") return Reflect.get(target, name, target);
      return async (order: Order, signal: AbortSignal) => {
        const server = await target.create({ ...order, tag: null }, signal);
        if (order.tag !== null) await target.tag(server.id, order.tag);
        return { ...server, tag: order.tag };
      };
    },
  });
}
