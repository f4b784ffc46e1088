import { missing } from "./answers.ts";
import { ACCOUNT, PROFILES, REGION, SUBNETS, ZONES } from "./site.ts";
import type { FloatingIp, Image, Instance, Json, Volume, World } from "./things.ts";

const WALL = "2026-11-30T00:00:00.000Z";

/** How things of a region look on the wire. */
export class Shapes {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  shown(one: Instance): Json {
    const [count, memory] = PROFILES[one.profile]!;
    const status = this.#world.statusOf(one);
    const nic = { ...this.#nic(one), subnet: this.#reference("subnet", this.#subnetIn(one.zone)) };
    const volume = {
      ...pick(
        this.#named("volume", one.volume, this.#world.volumes.get(one.volume)?.name ?? "gone", "volumes"),
        "id",
        "name",
        "href",
        "crn",
        "resource_type",
      ),
    };
    const attachment = {
      device: { id: "80b3e36e-41f4-40e9-bd56-beae81792a68" },
      href: hrefOf(this.#world.url(), `instances/${one.id}/volume_attachments`, one.volume),
      id: one.volume,
      name: "boot",
      volume,
    };
    return {
      availability: { class: one.spot ? "spot" : "standard" },
      availability_policy: { host_failure: "restart", preemption: one.spot ? "delete" : "stop" },
      bandwidth: 4_000,
      boot_volume_attachment: attachment,
      cluster_network_attachments: [],
      confidential_compute_mode: "disabled",
      created_at: WALL,
      crn: this.#crn("instance", one.id),
      disks: [],
      enable_secure_boot: false,
      software_attachments: [],
      threads_per_core: 2,
      health_reasons: [],
      health_state: status === "running" ? "ok" : "inapplicable",
      href: hrefOf(this.#world.url(), "instances", one.id),
      id: one.id,
      image: pick(
        this.#named("image", one.image, this.#world.images.get(one.image)?.name ?? "gone", "images"),
        "id",
        "name",
        "href",
        "crn",
        "resource_type",
      ),
      lifecycle_reasons: [],
      lifecycle_state:
        status === "failed"
          ? "failed"
          : status === "deleting"
            ? "deleting"
            : status === "pending"
              ? "pending"
              : "stable",
      memory,
      metadata_service: { enabled: false, protocol: "http", response_hop_limit: 1 },
      name: one.name,
      network_attachments: [],
      network_interfaces: [nic],
      primary_network_interface: nic,
      profile: {
        href: hrefOf(this.#world.url(), "instance/profiles", one.profile),
        name: one.profile,
        resource_type: "instance_profile",
      },
      reservation_affinity: { policy: "disabled", pool: [] },
      resource_group: this.#groupOf(one.group),
      resource_type: "instance",
      startable: true,
      status,
      status_reasons: status === "failed" && one.reason ? [one.reason] : [],
      total_network_bandwidth: 3_000,
      total_volume_bandwidth: 1_000,
      vcpu: { architecture: "amd64", count, manufacturer: "intel", burst: { limit: 100 }, percentage: 100 },
      volume_attachments: [attachment],
      volume_bandwidth_qos_mode: "weighted",
      vpc: this.#reference("vpc", "nodepool"),
      zone: this.#zone(one.zone),
    };
  }

  ip(one: FloatingIp): Json {
    const machine = this.#world.instances.get(one.machine ?? "");
    return {
      ...{
        address: one.address,
        created_at: WALL,
        crn: this.#crn("floating-ip", one.id),
        href: hrefOf(this.#world.url(), "floating_ips", one.id),
      },
      ...{
        id: one.id,
        name: one.name,
        resource_group: this.#groupOf(one.group),
        status: "available",
        zone: this.#zone(one.zone),
      },
      ...(machine && { target: this.#nic(machine) }),
    };
  }

  /** A network interface, which has no name of its own for all of IBM. */
  #nic(one: Instance): Json {
    const at = (kind: string, id: string, name: string, path: string) => {
      const { crn: _, ...all } = this.#named(kind, id, name, path);
      return all;
    };
    const id = `7ec86020-1c6e-4889-b3f0-${one.nic.slice(-12)}`;
    return {
      ...at("network_interface", one.nic, "eth0", `instances/${one.id}/network_interfaces`),
      primary_ip: { address: one.address, ...at("subnet_reserved_ip", id, "eth0", "subnets/1/reserved_ips") },
    };
  }

  volume(one: Volume): Json {
    const machine = this.#world.instances.get(one.machine ?? "");
    const attached = machine && {
      delete_volume_on_instance_delete: !machine.keeps,
      device: { id: "80b3e36e-41f4-40e9-bd56-beae81792a68" },
      href: hrefOf(this.#world.url(), `instances/${machine.id}/volume_attachments`, one.id),
      id: one.id,
      instance: pick(
        this.#named("instance", machine.id, machine.name, "instances"),
        "id",
        "name",
        "href",
        "crn",
      ),
      name: "boot",
      type: "boot",
    };
    return {
      ...{
        active: machine !== undefined,
        adjustable_capacity_states: ["attached"],
        adjustable_iops_states: ["attached"],
        software_attachments: [],
        storage_generation: 1,
        attachment_state: machine ? "attached" : "unattached",
        bandwidth: 1_000,
        busy: false,
        capacity: 100,
      },
      ...{
        created_at: WALL,
        crn: this.#crn("volume", one.id),
        encryption: "provider_managed",
        health_reasons: [],
        health_state: "ok",
      },
      ...{
        href: hrefOf(this.#world.url(), "volumes", one.id),
        id: one.id,
        iops: 3_000,
        name: one.name,
        resource_group: this.#groupOf(one.group),
      },
      ...{
        resource_type: "volume",
        status: "available",
        status_reasons: [],
        user_tags: [],
        zone: this.#zone(one.zone),
      },
      profile: {
        href: hrefOf(this.#world.url(), "volume/profiles", "general-purpose"),
        name: "general-purpose",
      },
      volume_attachments: attached ? [attached] : [],
    };
  }

  image(one: Image): Json {
    const status = this.#world.imageStatusOf(one);
    const [family = "", version = ""] = one.os.split("-");
    return {
      ...{
        allowed_use: { api_version: "2026-10-06", bare_metal_server: "true", instance: "true" },
        catalog_offering: { managed: false },
        zones: ZONES.map((zone) => this.#zone(zone)),
        created_at: one.createdAt,
        crn: this.#crn("image", one.id),
        encryption: "none",
        file: { size: 1 },
      },
      ...{
        href: hrefOf(this.#world.url(), "images", one.id),
        id: one.id,
        minimum_provisioned_size: 100,
        name: one.name,
      },
      operating_system: {
        ...{
          allow_user_image_creation: true,
          architecture: "amd64",
          dedicated_host_only: false,
          display_name: one.os,
          family,
          name: one.os,
        },
        ...{
          href: hrefOf(this.#world.url(), "operating_systems", one.os),
          user_data_format: "cloud_init",
          vendor: family,
          version,
        },
      },
      ...{
        resource_group: this.#groupOf(one.group),
        resource_type: "image",
        status,
        user_data_format: "cloud_init",
      },
      status_reasons:
        status === "failed" ? [{ code: "image_data_corrupted", message: "The file was not found" }] : [],
      visibility: one.owner === "user" ? "private" : "public",
    };
  }

  vpc(name: string): Json {
    const part = (kind: string) =>
      pick(this.#named(kind, idOf(kind, name), `${name}-${kind}`, kind), "id", "name", "href", "crn");
    const table = part("routing_table");
    return {
      ...{
        classic_access: false,
        created_at: WALL,
        cse_source_ips: [],
        public_address_ranges: [],
        default_network_acl: part("network_acl"),
        default_routing_table: { ...table, resource_type: "routing_table" },
      },
      default_security_group: part("security_group"),
      dns: {
        enable_hub: false,
        resolution_binding_count: 0,
        resolver: { servers: [], type: "system", configuration: "default" },
      },
      ...{
        health_reasons: [],
        health_state: "ok",
        resource_group: this.#groupOf("0f0e5e4a"),
        status: "available",
      },
      ...this.#reference("vpc", name),
    };
  }

  subnet(name: string): Json {
    const { vpc, zone } = SUBNETS[name]!;
    const acl = pick(
      this.#named("network_acl", idOf("network_acl", vpc), "acl", "network_acls"),
      "id",
      "name",
      "href",
      "crn",
    );
    return {
      ...{
        available_ipv4_address_count: 200,
        created_at: WALL,
        ip_version: "ipv4",
        ipv4_cidr_block: "10.240.0.0/16",
        network_acl: acl,
      },
      ...{
        resource_group: this.#groupOf("0f0e5e4a"),
        status: "available",
        total_ipv4_address_count: 256,
        zone: this.#zone(zone),
      },
      routing_table: {
        ...pick(this.#named("routing_table", "1", "table", "x"), "id", "name", "href", "crn"),
        resource_type: "routing_table",
      },
      vpc: this.#reference("vpc", vpc),
      ...this.#reference("subnet", name),
    };
  }

  key(name: string): Json {
    const { resource_type: _, ...reference } = this.#reference("key", name);
    return {
      ...reference,
      created_at: WALL,
      fingerprint: "SHA256:yxavE4CIOL2NlsqcurRO3xGjkP6m",
      length: 2_048,
      public_key: "ssh-rsa AAAA",
      resource_group: this.#groupOf("0f0e5e4a"),
      type: "rsa",
    };
  }

  profile(name: string): Json {
    const size = PROFILES[name];
    if (size === undefined) throw missing("instance profile", name);
    const [cores, gib] = size;
    const fixed = (value: unknown) => ({ type: "fixed", value });
    const oneOf = (of: string) => ({ type: "enum", default: of, values: [of] });
    return {
      ...{
        availability_class: { ...oneOf("standard"), values: ["standard", "spot"] },
        bandwidth: fixed(4_000),
        cluster_network_attachment_count: { type: "dependent" },
      },
      ...{
        confidential_compute_modes: { type: "enum", default: "disabled", values: ["disabled"] },
        disks: [],
        family: "balanced",
      },
      ...{
        href: hrefOf(this.#world.url(), "instance/profiles", name),
        memory: fixed(gib),
        name,
        network_attachment_count: { type: "dependent" },
        network_interface_count: { type: "dependent" },
      },
      network_bandwidth_mode: { type: "fixed", value: "shared" },
      supported_cluster_network_profiles: [],
      threads_per_core: { type: "enum", default: 2, values: [2] },
      vcpu_burst_limit: fixed(100),
      vcpu_percentage: { type: "enum", default: 100, values: [100] },
      zones: ZONES.map((zone) => this.#zone(zone)),
      ...{
        os_architecture: oneOf("amd64"),
        port_speed: fixed(1_000),
        reservation_terms: { type: "enum", values: [] },
        resource_type: "instance_profile",
      },
      ...{
        secure_boot_modes: { type: "enum", default: false, values: [false] },
        status: "current",
        total_volume_bandwidth: fixed(1_000),
      },
      ...{
        vcpu_architecture: { type: "fixed", value: "amd64" },
        vcpu_count: fixed(cores),
        vcpu_manufacturer: { type: "fixed", value: "intel" },
      },
      volume_bandwidth_qos_modes: oneOf("weighted"),
    };
  }

  #named(kind: string, id: string, name: string, path: string) {
    return {
      crn: this.#crn(kind, id),
      href: hrefOf(this.#world.url(), path, id),
      id,
      name,
      resource_type: kind,
    };
  }

  #reference(kind: string, name: string) {
    return this.#named(kind, idOf(kind, name), name, `${kind}s`);
  }

  #subnetIn(zone: string): string {
    return Object.keys(SUBNETS).find((name) => SUBNETS[name]!.zone === zone)!;
  }

  #groupOf(id: string): Json {
    return {
      href: `https://resource-controller.cloud.ibm.com/v2/resource_groups/${id}`,
      id,
      name: this.#world.groups.get(id),
    };
  }

  #zone(name: string): Json {
    return { href: `${this.#world.url()}/v1/regions/${REGION}/zones/${name}`, name };
  }

  #crn(kind: string, id: string): string {
    return `crn:v1:bluemix:public:is:${REGION}:a/${ACCOUNT}::${kind.replaceAll("_", "-")}:${id}`;
  }
}

/** Ids of what is there from the start follow from their names. */
export function idOf(kind: string, name: string): string {
  return `r006-${kind.replaceAll("_", "-")}-${name}`;
}

export function hrefOf(url: string, path: string, id: string): string {
  return `${url}/v1/${path}/${id}`;
}

function pick(all: Json, ...keys: readonly string[]): Json {
  return Object.fromEntries(Object.entries(all).filter(([key]) => keys.includes(key)));
}
