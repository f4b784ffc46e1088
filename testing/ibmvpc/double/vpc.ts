import { missing, Refusal } from "./answers.ts";
import type { IbmSettings } from "./settings.ts";
import { hrefOf, idOf, Shapes } from "./shapes.ts";
import { IMAGES, KEYS, PROFILES, SUBNETS, ZONES } from "./site.ts";
import type { FloatingIp, Image, Instance, Json, Reference, Thing, Volume } from "./things.ts";

const NAME = /^([a-z]|[a-z][-a-z0-9]{0,61}[a-z0-9])$/;

/** The resources of a region, generation 2 of VPC. Time moves by the clock alone. */
export class Vpc {
  readonly instances = new Map<string, Instance>();
  readonly floatingIps = new Map<string, FloatingIp>();
  readonly volumes = new Map<string, Volume>();
  readonly images = new Map<string, Image>();
  readonly groups = new Map<string, string>([["0f0e5e4a", "Default"]]);
  readonly #settings: () => IbmSettings;
  readonly #now: () => number;
  readonly #object: (href: string) => boolean;
  readonly url: () => string;
  readonly #shapes = new Shapes(this);
  #count = 0;

  constructor(parts: {
    readonly settings: () => IbmSettings;
    readonly now: () => number;
    readonly object: (href: string) => boolean;
    readonly url: () => string;
  }) {
    this.#settings = parts.settings;
    this.#now = parts.now;
    this.#object = parts.object;
    this.url = parts.url;
    for (const [name, os, createdAt] of IMAGES) {
      const id = this.#id();
      this.images.set(id, { id, name, os, createdAt, madeAt: -1e9, group: "0f0e5e4a", owner: "provider" });
    }
  }

  /** Ends what has come to its end; called before each request is looked at. */
  tick(): void {
    const now = this.#now();
    const { startMs, stopMs } = this.#settings();
    for (const one of this.instances.values()) {
      if (
        one.deletedAt === undefined &&
        one.status === undefined &&
        one.reason !== undefined &&
        now >= one.madeAt + startMs
      )
        one.status = "failed";
      if (one.deletedAt === undefined || now < one.deletedAt + stopMs) continue;
      this.instances.delete(one.id);
      for (const ip of this.floatingIps.values()) if (ip.machine === one.id) delete ip.machine;
      const volume = this.volumes.get(one.volume);
      if (volume === undefined) continue;
      delete volume.machine;
      if (!one.keeps) this.volumes.delete(volume.id);
    }
    for (const one of this.images.values())
      if (one.deletedAt !== undefined && now >= one.deletedAt + stopMs) this.images.delete(one.id);
  }

  /** The answer to a call of VPC: its status and body. `path`: below the version. */
  answer(
    method: string,
    path: readonly string[],
    query: URLSearchParams,
    body: Json | undefined,
  ): readonly [number, Json | undefined] {
    const [kind = "", id, under, nic, , ip] = path;
    if (kind === "instance")
      return under === undefined
        ? this.#page(
            "profiles",
            Object.keys(PROFILES).map((name) => this.#shapes.profile(name)),
            query,
          )
        : [200, this.#shapes.profile(under)];
    const call = [method, ...path.map((one, at) => (at % 2 === 1 ? "*" : one))].join(" ");
    switch (call) {
      case "PUT instances * network_interfaces * floating_ips *":
        return [201, this.#attach(id!, nic!, ip!)];
      case "GET vpcs":
        return this.#page(
          kind,
          [...new Set(Object.values(SUBNETS).map(({ vpc }) => vpc))].map((name) => this.#shapes.vpc(name)),
          query,
        );
      case "GET subnets":
        return this.#page(
          kind,
          Object.keys(SUBNETS).map((name) => this.#shapes.subnet(name)),
          query,
        );
      case "GET keys":
        return this.#page(
          kind,
          KEYS.map((name) => this.#shapes.key(name)),
          query,
        );
      case "POST instances":
        return [201, this.#shapes.shown(this.#launch(body!))];
      case "GET instances":
        return this.#page(
          kind,
          this.#seen(this.instances, query).map((one) => this.#shapes.shown(one)),
          query,
        );
      case "GET instances *":
        return [200, this.#shapes.shown(this.#one(this.instances, "instance", id!))];
      case "DELETE instances *":
        return [204, this.#end(this.#one(this.instances, "instance", id!))];
      case "POST instances * actions":
        return [201, this.#act(this.#one(this.instances, "instance", id!), String(body?.type))];
      case "GET floating_ips":
        return this.#page(
          kind,
          this.#seen(this.floatingIps, query).map((one) => this.#shapes.ip(one)),
          query,
        );
      case "POST floating_ips":
        return [201, this.#shapes.ip(this.#reserve(body!))];
      case "GET floating_ips *":
        return [200, this.#shapes.ip(this.#one(this.floatingIps, "floating IP", id!))];
      case "PATCH floating_ips *": {
        const one = this.#one(this.floatingIps, "floating IP", id!);
        if (typeof body?.name === "string") one.name = this.#free(this.floatingIps, body.name, one.id);
        return [200, this.#shapes.ip(one)];
      }
      case "DELETE floating_ips *":
        this.floatingIps.delete(this.#one(this.floatingIps, "floating IP", id!).id);
        return [204, undefined];
      case "GET volumes":
        return this.#page(
          kind,
          this.#seen(this.volumes, query).map((one) => this.#shapes.volume(one)),
          query,
        );
      case "DELETE volumes *": {
        const one = this.#one(this.volumes, "volume", id!);
        if (one.machine !== undefined)
          throw new Refusal(409, "volume_in_use", "The volume is attached to an instance");
        this.volumes.delete(one.id);
        return [204, undefined];
      }
      case "GET images": {
        const visibility = query.get("visibility");
        const all = this.#seen(this.images, query).filter(
          ({ owner }) => visibility === null || (visibility === "private") === (owner === "user"),
        );
        return this.#page(
          kind,
          all.map((one) => this.#shapes.image(one)),
          query,
        );
      }
      case "POST images":
        return [201, this.#shapes.image(this.#import(body!))];
      case "GET images *":
        return [200, this.#shapes.image(this.#one(this.images, "image", id!))];
      case "DELETE images *":
        this.#one(this.images, "image", id!).deletedAt ??= this.#now();
        return [202, undefined];
      default:
        throw new Refusal(404, "invalid_route", `The requested route ${call} does not exist`);
    }
  }

  /** A resource group, by name and made where that is said. */
  group(name: string): { readonly id: string; readonly name: string } {
    const id = [...this.groups].find(([, one]) => one === name)?.[0] ?? this.#id();
    this.groups.set(id, name);
    return { id, name };
  }

  /** A machine that somebody else made. */
  foreign(name: string): void {
    const id = this.#id("0717_");
    const common = { madeAt: this.#now(), zone: ZONES[1]!, group: "0f0e5e4a" };
    const [image] = this.images.keys();
    this.instances.set(id, {
      ...common,
      id,
      name,
      profile: "cx2-2x4",
      spot: false,
      volume: "none",
      nic: this.#id("0717-"),
      image: image!,
      keeps: true,
      address: "10.0.0.1",
    });
  }

  /** IBM takes a spot machine back. */
  preempt(one: Instance): void {
    one.deletedAt ??= this.#now();
  }

  #launch(body: Json): Instance {
    const { profile, image, zone, availability } = body as {
      profile?: Reference;
      image?: Reference;
      zone?: Reference;
      availability?: { class?: string };
    };
    const {
      keys = [],
      primary_network_interface: nic,
      boot_volume_attachment: boot,
    } = body as {
      keys?: Reference[];
      primary_network_interface?: { subnet?: Reference; name?: string };
      boot_volume_attachment?: { delete_volume_on_instance_delete?: boolean; volume?: Reference };
    };
    const name = this.#free(this.instances, String(body.name));
    const size = PROFILES[profile?.name ?? ""];
    if (size === undefined)
      throw new Refusal(400, "bad_field", `Invalid profile ${profile?.name}`, {
        name: "profile.name",
        type: "field",
      });
    const subnet = Object.keys(SUBNETS).find((one) => idOf("subnet", one) === nic?.subnet?.id);
    if (subnet === undefined)
      throw new Refusal(404, "not_found", "subnet not found", {
        name: "primary_network_interface.subnet.id",
        type: "field",
      });
    if (SUBNETS[subnet]!.zone !== zone?.name)
      throw new Refusal(
        400,
        "invalid_zone",
        "Please check whether the resources you are requesting are in the same zone.",
      );
    const system = [...this.images.values()].find(
      (one) => one.id === image?.id || hrefOf(this.url(), "images", one.id) === image?.href,
    );
    if (system === undefined)
      throw new Refusal(404, "not_found", "image not found", { name: "image.id", type: "field" });
    if (this.imageStatusOf(system) !== "available")
      throw new Refusal(400, "image_not_available", "The image is not available");
    for (const { id } of keys)
      if (!KEYS.some((key) => idOf("key", key) === id))
        throw new Refusal(404, "not_found", "key not found", { name: "keys.id", type: "field" });
    const group = this.#group(body);
    const { quotas, failure } = this.#settings();
    const living = [...this.instances.values()];
    const used = living.reduce((sum, one) => sum + PROFILES[one.profile]![0], 0);
    if (
      living.length + 1 > (quotas.instances ?? Number.POSITIVE_INFINITY) ||
      used + size[0] > (quotas.vcpu ?? Number.POSITIVE_INFINITY)
    )
      throw new Refusal(
        400,
        "over_quota",
        `A non-dedicated host VSI with this profile (${size[0]} vCPUs) will put user over quota. Allocated to instances: ${used}, Quota: ${quotas.vcpu ?? quotas.instances}`,
      );
    const spot = availability?.class === "spot";
    const profileName = profile!.name!;
    const id = this.#id("0717_");
    const volume = this.#id();
    const isFull = this.#isFull(zone!.name!, profileName, spot);
    const reason =
      failure ??
      (isFull
        ? { code: "cannot_start_capacity", message: "Insufficient capacity within the selected zone" }
        : undefined);
    const common = { madeAt: this.#now(), zone: zone!.name!, group };
    this.volumes.set(volume, {
      ...common,
      id: volume,
      name: this.#free(this.volumes, boot?.volume?.name ?? `boot-${id.slice(-6)}`),
      machine: id,
    });
    const made: Instance = {
      ...{
        ...common,
        id,
        name,
        profile: profileName,
        spot,
        volume,
        nic: this.#id("0717-"),
        image: system.id,
      },
      keeps: boot?.delete_volume_on_instance_delete === false,
      address: `10.240.${this.instances.size >> 8}.${this.instances.size & 255}`,
      ...(reason && { reason }),
    };
    this.instances.set(id, made);
    return made;
  }

  #isFull(zone: string, profile: string, spot: boolean): boolean {
    const limit = this.#settings().capacity.find(
      (one) =>
        (one.zone ?? zone) === zone && (one.profile ?? profile) === profile && (one.spot ?? spot) === spot,
    );
    const there = [...this.instances.values()].filter(
      (one) =>
        one.zone === zone &&
        one.profile === profile &&
        one.reason === undefined &&
        this.statusOf(one) !== "stopped",
    );
    return limit !== undefined && there.length >= limit.most;
  }

  /** A machine cannot be deleted before it runs, or has failed. */
  #end(one: Instance): undefined {
    const status = this.statusOf(one);
    if (/^(pending|starting|stopping)$/.test(status))
      throw new Refusal(
        409,
        "instance_delete_conflict",
        `The instance cannot be deleted in the current status ${status}.`,
      );
    one.deletedAt ??= this.#now();
  }

  /** Queues an action ("Create an instance action"). A machine that starts needs room, and fails without. */
  #act(one: Instance, type: string): Json {
    if (type !== "stop" && type !== "start")
      throw new Refusal(400, "bad_field", `Invalid type ${type}`, { name: "type", type: "field" });
    const { startMs, stopMs } = this.#settings();
    const before = one.actions?.at(-1);
    const ends = (before?.at ?? one.madeAt) + (before?.type === "stop" ? stopMs : startMs);
    const isStopped = before?.type === "stop";
    if (type === "start" && isStopped && this.#isFull(one.zone, one.profile, one.spot)) {
      one.reason = {
        code: "cannot_start_capacity",
        message: "Insufficient capacity within the selected zone",
      };
      one.status = "failed";
    }
    // What is so already takes no time.
    if ((type === "stop") !== isStopped)
      one.actions = [...(one.actions ?? []), { type, at: Math.max(this.#now(), ends) }];
    const action = this.#id();
    return {
      ...{
        id: action,
        href: `${this.url()}/v1/instances/${one.id}/actions/${action}`,
        type,
        status: "pending",
      },
      created_at: "2026-11-30T00:00:00.000Z",
    };
  }

  /** An address that another machine had is taken from it, as IBM does. */
  #attach(id: string, nic: string, ip: string): Json {
    const machine = this.#one(this.instances, "instance", id);
    const one = this.#one(this.floatingIps, "floating IP", ip);
    if (machine.nic !== nic) throw missing("network interface", nic);
    if (machine.zone !== one.zone)
      throw new Refusal(
        400,
        "invalid_zone",
        "Please check whether the resources you are requesting are in the same zone.",
      );
    one.machine = machine.id;
    return this.#shapes.ip(one);
  }

  #reserve(body: Json): FloatingIp {
    const { quotas } = this.#settings();
    if (this.floatingIps.size + 1 > (quotas.floating_ips ?? Number.POSITIVE_INFINITY))
      throw new Refusal(400, "over_quota", "The request would exceed the quota for a resource type.");
    const id = this.#id("r006-");
    const { target, zone: named } = body as { target?: Reference; zone?: Reference };
    const machine = [...this.instances.values()].find(({ nic }) => nic === target?.id);
    if (target !== undefined && machine === undefined) throw missing("network interface", String(target.id));
    const zone = machine?.zone ?? named?.name ?? "";
    if (!ZONES.includes(zone))
      throw new Refusal(400, "bad_field", "zone is not valid", { name: "zone.name", type: "field" });
    const one = {
      id,
      zone,
      group: this.#group(body),
      madeAt: this.#now(),
      name: this.#free(this.floatingIps, String(body.name)),
      address: `192.0.2.${this.#count % 250}`,
      ...(machine && { machine: machine.id }),
    };
    this.floatingIps.set(id, one);
    return one;
  }

  #import(body: Json): Image {
    const { file, operating_system: os } = body as { file?: Reference; operating_system?: Reference };
    if (!/^[a-z0-9-]+$/.test(os?.name ?? ""))
      throw new Refusal(404, "not_found", "operating system not found", {
        name: "operating_system.name",
        type: "field",
      });
    const name = this.#free(this.images, String(body.name));
    const isThere = this.#object(file?.href ?? "");
    const id = this.#id("r006-");
    const one: Image = {
      id,
      name,
      os: os!.name!,
      group: this.#group(body),
      owner: "user",
      createdAt: "2026-11-30T00:00:00.000Z",
      madeAt: this.#now(),
      isBroken: !isThere,
    };
    this.images.set(id, one);
    return one;
  }

  #group(body: Json): string {
    const id = (body.resource_group as Reference | undefined)?.id ?? "0f0e5e4a";
    if (!this.groups.has(id))
      throw new Refusal(404, "not_found", "resource group not found", {
        name: "resource_group.id",
        type: "field",
      });
    return id;
  }

  /** Names are unique in a region, also while what has one is being deleted. */
  #free<T extends Thing>(all: ReadonlyMap<string, T>, name: string, own = ""): string {
    if (!NAME.test(name))
      throw new Refusal(400, "validation_pattern_failed", `name ${name} is not valid`, {
        name: "name",
        type: "field",
        value: name,
      });
    for (const one of all.values())
      if (one.name === name && one.id !== own)
        throw new Refusal(400, "validation_unique_failed", `Provided Name (${name}) is not unique`, {
          name: "name",
          type: "field",
          value: name,
        });
    return name;
  }

  #one<T extends Thing>(all: ReadonlyMap<string, T>, kind: string, id: string): T {
    const found = all.get(id);
    if (found === undefined) throw missing(kind, id);
    return found;
  }

  #seen<T extends Thing>(all: ReadonlyMap<string, T>, query: URLSearchParams): readonly T[] {
    const name = query.get("name");
    const group = query.get("resource_group.id");
    const since = this.#now() - this.#settings().unseenMs;
    return [...all.values()].filter(
      (one) =>
        one.madeAt <= since &&
        (name === null || one.name === name) &&
        (group === null || one.group === group),
    );
  }

  #page(key: string, all: readonly Json[], query: URLSearchParams): readonly [number, Json] {
    const limit = Math.min(Number(query.get("limit") ?? 50), this.#settings().pageSize);
    const start = Number(query.get("start") ?? 0);
    const at = (from?: number) => ({
      href: `${this.url()}/v1/${key === "profiles" ? "instance/profiles" : key}?limit=${limit}${from === undefined ? "" : `&start=${from}`}`,
    });
    return [
      200,
      {
        ...{ first: at(), limit, total_count: all.length, [key]: all.slice(start, start + limit) },
        ...(start + limit < all.length && { next: at(start + limit) }),
      },
    ];
  }

  statusOf(one: Instance): string {
    const age = this.#now() - one.madeAt;
    const { startMs, stopMs } = this.#settings();
    if (one.deletedAt !== undefined) return "deleting";
    if (one.status !== undefined) return one.status;
    const action = one.actions?.findLast(({ at }) => at <= this.#now());
    if (action !== undefined) {
      const isUnderWay = this.#now() - action.at < (action.type === "stop" ? stopMs : startMs);
      if (action.type === "stop") return isUnderWay ? "stopping" : "stopped";
      return isUnderWay ? "starting" : "running";
    }
    return age < startMs / 2 ? "pending" : age < startMs ? "starting" : "running";
  }

  imageStatusOf(one: Image): string {
    if (one.deletedAt !== undefined) return "deleting";
    if (this.#now() < one.madeAt + this.#settings().importMs) return "pending";
    return one.isBroken === true ? "failed" : "available";
  }

  #id(prefix = ""): string {
    return `${prefix}1e09281b-f177-46fb-baf1-${String(++this.#count).padStart(12, "0")}`;
  }
}
