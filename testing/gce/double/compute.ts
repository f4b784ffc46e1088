import { aggregated, exists, fits, invalid, missing, page, Refusal } from "./answers.ts";
import type { Named } from "./discovery.ts";
import { type Disk, type Instance, type Json, Limits, last, type OperationError, pathOf } from "./limits.ts";
import { powered } from "./power.ts";
import type { GceSettings } from "./settings.ts";
import { type GceSite, regionOf } from "./site.ts";

interface Operation extends Json {
  name: string;
  status: "RUNNING" | "DONE";
}
/** What is still to happen. */
interface Pending {
  readonly at: number;
  readonly run: () => void;
}

const NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Google remembers a request's id for this long. */
const REMEMBERED_MS = 3_600_000;
const ZERO = "00000000-0000-0000-0000-000000000000";

/** Compute Engine v1: what the discovery document says of its methods, with their effects. */
export class Compute {
  readonly instances = new Map<string, Instance>();
  readonly disks = new Map<string, Disk>();
  readonly images = new Map<string, Json & { name: string }>();
  readonly #site: GceSite;
  readonly #limits: Limits;
  readonly #url: () => string;
  readonly #now: () => { readonly mono: number; readonly wall: number };
  readonly #settings: () => GceSettings;
  readonly #object: (source: string) => boolean;
  readonly #operations = new Map<string, Operation>();
  readonly #requests = new Map<string, { readonly at: number; readonly operation: Operation }>();
  readonly #shownFrom = new WeakMap<object, number>();
  #pending: Pending[] = [];
  #ids = 4_000_000_000_000_000_000n;

  constructor(parts: {
    readonly site: GceSite;
    readonly url: () => string;
    readonly now: () => { readonly mono: number; readonly wall: number };
    readonly settings: () => GceSettings;
    /** Whether the bucket has the object of a URL. */
    readonly object: (source: string) => boolean;
  }) {
    this.#site = parts.site;
    this.#url = parts.url;
    this.#now = parts.now;
    this.#settings = parts.settings;
    this.#object = parts.object;
    this.#limits = new Limits(parts.site, parts.settings, this.instances, this.disks);
  }

  /** Lets happen what is due. */
  tick(): void {
    const { mono } = this.#now();
    for (;;) {
      const due = this.#pending.filter(({ at }) => at <= mono).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) return;
      this.#pending = this.#pending.filter((one) => one !== due);
      due.run();
    }
  }

  /** The next moment at which something happens by itself, monotonic; undefined: none. */
  get next(): number | undefined {
    return this.#pending.length === 0 ? undefined : Math.min(...this.#pending.map(({ at }) => at));
  }

  /** The machine is taken back, as a spot machine is. Says whether there is such a spot machine. */
  preempt(zone: string, name: string): boolean {
    const instance = this.instances.get(`${zone}/${name}`);
    if (instance?.scheduling.provisioningModel !== "SPOT") return false;
    if (instance.scheduling.instanceTerminationAction === "DELETE") this.#end(instance);
    else instance.status = "TERMINATED";
    return true;
  }

  answer(
    { method, path, query }: Named,
    body: Json | undefined,
    failing: OperationError | undefined,
  ): Json | undefined {
    const { project = "", zone = "", region = "" } = path;
    const isImageProject = project in this.#site.families && method.startsWith("images.");
    if (project !== this.#site.project && !isImageProject)
      throw new Refusal(404, "notFound", `The resource 'projects/${project}' was not found`);
    if (zone !== "" && !this.#site.zones.includes(zone))
      throw new Refusal(404, "notFound", `The resource 'projects/${project}/zones/${zone}' was not found`);
    const repeated = this.#repeated(query.get("requestId"), method, path);
    if (repeated !== undefined) return repeated;
    const operation = (made: Operation) => this.#remember(query.get("requestId"), method, path, made);
    switch (method) {
      case "instances.insert":
        return operation(this.#insert(zone, body!, query, failing));
      case "instances.delete":
        return operation(this.#delete(this.#instance(path), failing));
      case "instances.stop":
      case "instances.suspend":
      case "instances.resume": {
        const instance = this.#instance(path);
        const { ms, done, error } = powered(method, instance, failing, this.#settings(), this.#limits);
        return operation(this.#operate(last(method.replace(".", "/")), instance, ms, done, error));
      }
      case "instances.setMetadata":
      case "instances.setLabels": {
        const instance = this.#instance(path);
        if (method === "instances.setLabels") instance.labels = body!.labels as Record<string, string>;
        else instance.metadata = { ...(body as Instance["metadata"]), kind: "compute#metadata" };
        return operation(
          this.#operate(last(method.replace(".", "/")), instance, this.#settings().operationMs),
        );
      }
      case "instances.get":
        return this.#instance(path);
      case "instances.list":
        return this.#list("compute#instanceList", this.#seen(zone), query);
      case "instances.aggregatedList":
        return aggregated("instance", this.#seen(), this.#site.zones, query, this.#settings().pageSize);
      case "instances.getSerialPortOutput": {
        const contents = `SeaBIOS\n${this.#instance(path).name} login: `;
        return { kind: "compute#serialPortOutput", contents, start: "0", next: String(contents.length) };
      }
      case "disks.list":
        return this.#list(
          "compute#diskList",
          [...this.disks.values()].filter((one) => last(one.zone) === zone),
          query,
        );
      case "disks.aggregatedList":
        return aggregated(
          "disk",
          [...this.disks.values()],
          this.#site.zones,
          query,
          this.#settings().pageSize,
        );
      case "disks.insert": {
        const { name = "", sizeGb = "10" } = body as { name?: string; sizeGb?: string };
        const disk = this.#disk(zone, name, { sizeGb, type: "pd-standard" });
        return operation(this.#operate("insert", disk, this.#settings().operationMs));
      }
      case "disks.delete": {
        const disk =
          this.disks.get(`${zone}/${path.disk}`) ??
          missing(`projects/${project}/zones/${zone}/disks/${path.disk}`);
        if (disk.users.length > 0)
          throw new Refusal(
            400,
            "resourceInUseByAnotherResource",
            `The disk resource '${disk.name}' is already being used`,
          );
        const gone = () => void this.disks.delete(`${zone}/${disk.name}`);
        return operation(this.#operate("delete", disk, this.#settings().operationMs, gone));
      }
      case "zoneOperations.get":
      case "globalOperations.get":
      case "zoneOperations.wait":
      case "globalOperations.wait":
        return (
          this.#operations.get(path.operation ?? "") ??
          missing(
            `projects/${project}/${zone === "" ? "global" : `zones/${zone}`}/operations/${path.operation}`,
          )
        );
      case "machineTypes.get": {
        const type = this.#site.machineTypes[path.machineType ?? ""];
        const at = `projects/${project}/zones/${zone}/machineTypes/${path.machineType}`;
        if (type === undefined) return missing(at);
        const size = this.#settings().unsized.includes(path.machineType ?? "") ? {} : type;
        return {
          kind: "compute#machineType",
          id: "3004",
          name: path.machineType,
          ...size,
          zone,
          selfLink: this.#link(at),
        };
      }
      case "zones.list": {
        const zones = this.#site.zones.map((name) => ({
          ...{ kind: "compute#zone", id: "2100", name, status: "UP" },
          region: this.#link(`projects/${project}/regions/${regionOf(name)}`),
          selfLink: this.#link(`projects/${project}/zones/${name}`),
        }));
        return this.#list("compute#zoneList", zones, query);
      }
      case "regions.get": {
        if (!this.#site.zones.some((one) => regionOf(one) === region))
          return missing(`projects/${project}/regions/${region}`);
        const quotas = Object.keys(this.#settings().quotas)
          .filter((metric) => metric !== "CPUS_ALL_REGIONS")
          .map((metric) => this.#limits.quota(metric, region));
        return { kind: "compute#region", id: "1000", name: region, status: "UP", quotas };
      }
      case "projects.get":
        return {
          kind: "compute#project",
          id: "1",
          name: project,
          quotas: [this.#limits.quota("CPUS_ALL_REGIONS")],
        };
      default:
        return this.#imageCall(method, path, query, body, operation);
    }
  }

  #imageCall(
    method: string,
    { project = "", image: name = "", family = "" }: Readonly<Record<string, string>>,
    query: URLSearchParams,
    body: Json | undefined,
    operation: (made: Operation) => Operation,
  ): Json | undefined {
    const own = this.images.get(name);
    switch (method) {
      case "images.getFromFamily": {
        if (!this.#site.families[project]?.includes(family))
          return missing(`projects/${project}/global/images/family/${family}`);
        const found = `${family}-20261101`;
        const selfLink = this.#link(`projects/${project}/global/images/${found}`);
        return { kind: "compute#image", id: "7", name: found, family, status: "READY", selfLink };
      }
      case "images.list":
        return this.#list("compute#imageList", [...this.images.values()], query);
      case "images.get":
        return own ?? missing(`projects/${project}/global/images/${name}`);
      case "images.insert": {
        const wanted = body as Json & { name: string; rawDisk?: { source: string } };
        if (!NAME.test(wanted.name)) throw invalid("resource.name", wanted.name);
        if (this.images.has(wanted.name)) throw exists(`global/images/${wanted.name}`);
        const source = wanted.rawDisk?.source ?? "";
        if (!this.#object(source))
          throw new Refusal(400, "invalid", `The source '${source}' is not accessible`);
        const image = {
          ...{ kind: "compute#image", id: this.#id(), status: "PENDING", diskSizeGb: "1", sourceType: "RAW" },
          ...{ ...wanted, creationTimestamp: this.#time(), labelFingerprint: "42WmSpB8rSM=" },
          selfLink: this.#link(`projects/${project}/global/images/${wanted.name}`),
        };
        this.images.set(wanted.name, image);
        const ready = () => void Object.assign(image, { status: "READY" });
        return operation(this.#operate("insert", image, this.#settings().startMs, ready));
      }
      case "images.deprecate": {
        const image = own ?? missing(`projects/${project}/global/images/${name}`);
        image.deprecated = body;
        return operation(this.#operate("deprecate", image, this.#settings().operationMs));
      }
      case "images.setLabels": {
        const image = own ?? missing(`projects/${project}/global/images/${name}`);
        image.labels = body?.labels;
        return operation(this.#operate("setLabels", image, this.#settings().operationMs));
      }
      case "images.delete": {
        const image = own ?? missing(`projects/${project}/global/images/${name}`);
        const gone = () => void this.images.delete(name);
        return operation(this.#operate("delete", image, this.#settings().stopMs, gone));
      }
      default:
        throw new Error(`the double has no ${method}`);
    }
  }

  #insert(zone: string, body: Json, query: URLSearchParams, failing: OperationError | undefined): Operation {
    const { startMs, unseenMs, operationMs } = this.#settings();
    const wanted = body as unknown as Instance & { networkInterfaces?: Json[] };
    const key = `${zone}/${wanted.name}`;
    if (query.get("requestId") === ZERO) throw invalid("requestId", ZERO);
    if (!NAME.test(wanted.name)) throw invalid("resource.name", wanted.name);
    this.#judgeParts(zone, wanted);
    if (this.instances.has(key)) throw exists(`zones/${zone}/instances/${wanted.name}`);
    const [boot] = wanted.disks as { initializeParams?: Json & { diskSizeGb?: string; labels?: object } }[];
    const { initializeParams = {} } = boot ?? {};
    const size = initializeParams.diskSizeGb ?? "10";
    const diskType = last(String(initializeParams.diskType ?? "pd-standard"));
    const error =
      failing ??
      this.#limits.overQuota(zone, wanted, Number(size), diskType) ??
      this.#limits.withoutRoom(zone, wanted);
    const url = this.#link(`projects/${this.#site.project}/zones/${zone}/instances/${wanted.name}`);
    const count = this.#ids % 200n;
    const instance: Instance = {
      ...wanted,
      ...{
        kind: "compute#instance",
        id: this.#id(),
        status: "PROVISIONING",
        selfLink: url,
        cpuPlatform: "Intel Broadwell",
      },
      ...{ creationTimestamp: this.#time(), labelFingerprint: "42WmSpB8rSM=", deletionProtection: false },
      zone: this.#link(`projects/${this.#site.project}/zones/${zone}`),
      machineType: this.#link(
        `projects/${this.#site.project}/zones/${zone}/machineTypes/${last(wanted.machineType)}`,
      ),
      metadata: { ...wanted.metadata, kind: "compute#metadata", fingerprint: "42WmSpB8rSM=" },
      scheduling: {
        provisioningModel: "STANDARD",
        automaticRestart: true,
        onHostMaintenance: "MIGRATE",
        ...wanted.scheduling,
      },
      disks: [],
      networkInterfaces: (wanted.networkInterfaces ?? []).map((one) => ({
        ...{ ...one, kind: "compute#networkInterface", name: "nic0", networkIP: `10.128.0.${count}` },
        accessConfigs: ((one.accessConfigs as Json[] | undefined) ?? []).map((access) => ({
          ...{ ...access, kind: "compute#accessConfig", natIP: `203.0.113.${count}` },
        })),
      })),
    };
    if (error !== undefined) return this.#operate("insert", instance, operationMs, undefined, error);
    const disk = this.#disk(zone, wanted.name, {
      ...{ sizeGb: size, type: diskType, users: [url] },
      ...(initializeParams.labels && { labels: initializeParams.labels }),
      ...(initializeParams.description !== undefined && { description: initializeParams.description }),
    });
    const { initializeParams: _, ...attached } = (boot ?? {}) as Json;
    instance.disks = [
      {
        ...{
          ...attached,
          kind: "compute#attachedDisk",
          type: "PERSISTENT",
          deviceName: "persistent-disk-0",
          index: 0,
        },
        ...{ source: String(disk.selfLink), diskSizeGb: size, mode: "READ_WRITE", interface: "SCSI" },
      },
    ];
    this.instances.set(key, instance);
    this.#shownFrom.set(instance, this.#now().mono + unseenMs);
    const up = () => {
      if (instance.status !== "PROVISIONING") return;
      instance.status = "RUNNING";
      const limit = (instance.scheduling.maxRunDuration as { seconds?: string } | undefined)?.seconds;
      if (limit !== undefined) this.#after(Number(limit) * 1_000, () => this.#end(instance));
    };
    return this.#operate("insert", instance, startMs, up);
  }

  /** What the names in a request must be. */
  #judgeParts(zone: string, wanted: Instance & { networkInterfaces?: Json[] }): void {
    const type = last(wanted.machineType);
    if (!(type in this.#site.machineTypes))
      throw invalid(
        "resource.machineType",
        wanted.machineType,
        `Machine type with name '${type}' does not exist in zone '${zone}'.`,
      );
    for (const { network, subnetwork } of wanted.networkInterfaces ?? []) {
      if (subnetwork === undefined && !this.#site.networks.includes(last(String(network ?? "default"))))
        throw invalid(
          "resource.networkInterfaces[0].network",
          String(network),
          "The referenced network resource cannot be found.",
        );
    }
    for (const { initializeParams } of wanted.disks as { initializeParams?: { sourceImage?: string } }[]) {
      const image = initializeParams?.sourceImage ?? "";
      const [, project, family] = /projects\/([^/]+)\/global\/images\/family\/([^/]+)$/.exec(image) ?? [];
      const [, of, name] = /projects\/([^/]+)\/global\/images\/([^/]+)$/.exec(image) ?? [];
      const isThere =
        this.#site.families[project ?? ""]?.includes(family ?? "") === true ||
        this.#site.families[of ?? ""]?.some((one) => name?.startsWith(one)) === true ||
        (of === this.#site.project && this.images.get(name ?? "")?.status === "READY");
      if (!isThere) throw new Refusal(404, "notFound", `The resource '${image}' was not found`);
    }
    const pairs = Object.entries(wanted.labels ?? {});
    for (const [key, value] of pairs)
      if (!/^[a-z][a-z0-9_-]{0,62}$/.test(key) || !/^[a-z0-9_-]{0,63}$/.test(value))
        throw invalid("resource.labels", `${key}=${value}`);
  }

  #delete(instance: Instance, failing: OperationError | undefined): Operation {
    const { stopMs, operationMs } = this.#settings();
    if (failing !== undefined) return this.#operate("delete", instance, operationMs, undefined, failing);
    instance.status = "STOPPING";
    return this.#operate("delete", instance, stopMs, () => this.#end(instance));
  }

  #end(instance: Instance): void {
    const zone = last(instance.zone);
    if (this.instances.get(`${zone}/${instance.name}`) !== instance) return;
    this.instances.delete(`${zone}/${instance.name}`);
    for (const { source, autoDelete } of instance.disks) {
      const disk = this.disks.get(`${zone}/${last(source)}`);
      if (disk === undefined) continue;
      disk.users = [];
      if (autoDelete === true) this.disks.delete(`${zone}/${disk.name}`);
    }
  }

  #disk(zone: string, name: string, more: Partial<Disk>): Disk {
    const at = `projects/${this.#site.project}/zones/${zone}`;
    const disk: Disk = {
      ...{ kind: "compute#disk", id: this.#id(), name, status: "READY", creationTimestamp: this.#time() },
      ...{ zone: this.#link(at), selfLink: this.#link(`${at}/disks/${name}`), sizeGb: "10", users: [] },
      ...more,
      type: this.#link(`${at}/diskTypes/${more.type ?? "pd-standard"}`),
    };
    this.disks.set(`${zone}/${name}`, disk);
    return disk;
  }

  #operate(
    operationType: string,
    target: Json,
    ms: number,
    done: () => void = () => {},
    error?: OperationError,
  ): Operation {
    const zone = target.zone as string | undefined;
    const name = `operation-${Math.floor(this.#now().wall)}-${this.#id()}`;
    const where = zone === undefined ? `projects/${this.#site.project}/global` : pathOf(zone);
    const operation: Operation = {
      ...{ kind: "compute#operation", id: this.#id(), name, operationType, status: "RUNNING", progress: 0 },
      ...{ targetId: String(target.id), targetLink: String(target.selfLink), user: "robot@ci-project-1" },
      ...{
        insertTime: this.#time(),
        startTime: this.#time(),
        selfLink: this.#link(`${where}/operations/${name}`),
      },
      ...(zone !== undefined && { zone }),
    };
    this.#operations.set(name, operation);
    this.#after(ms, () => {
      Object.assign(operation, { status: "DONE", progress: 100, endTime: this.#time() });
      if (error === undefined) done();
      else
        Object.assign(operation, {
          error: { errors: [error] },
          httpErrorStatusCode: error.code === "QUOTA_EXCEEDED" ? 403 : 503,
          httpErrorMessage: error.code === "QUOTA_EXCEEDED" ? "FORBIDDEN" : "SERVICE UNAVAILABLE",
        });
    });
    return operation;
  }

  #after(ms: number, run: () => void): void {
    this.#pending.push({ at: this.#now().mono + ms, run });
  }

  #repeated(
    id: string | null,
    method: string,
    path: Readonly<Record<string, string>>,
  ): Operation | undefined {
    const known = this.#requests.get(`${method} ${JSON.stringify(path)} ${id}`);
    return known !== undefined && this.#now().mono - known.at < REMEMBERED_MS ? known.operation : undefined;
  }

  #remember(
    id: string | null,
    method: string,
    path: Readonly<Record<string, string>>,
    operation: Operation,
  ): Operation {
    if (id !== null)
      this.#requests.set(`${method} ${JSON.stringify(path)} ${id}`, { at: this.#now().mono, operation });
    // As it is now: what happens later is read by the operation's own calls.
    return { ...operation };
  }

  #instance({ zone, instance }: Readonly<Record<string, string>>): Instance {
    const found = this.instances.get(`${zone}/${instance}`);
    return found ?? missing(`projects/${this.#site.project}/zones/${zone}/instances/${instance}`);
  }

  #seen(zone?: string): Instance[] {
    const { mono } = this.#now();
    return [...this.instances.values()].filter(
      (one) => (this.#shownFrom.get(one) ?? 0) <= mono && (zone === undefined || last(one.zone) === zone),
    );
  }

  #list(kind: string, all: readonly object[], query: URLSearchParams): Json {
    const fitting = all.filter((one) => fits(one, query.get("filter")));
    const { items, nextPageToken } = page(fitting, query, this.#settings().pageSize);
    return { kind, id: kind, items, ...(nextPageToken !== undefined && { nextPageToken }) };
  }

  #link(path: string): string {
    return `${this.#url()}/compute/v1/${path}`;
  }

  #id(): string {
    this.#ids += 1n;
    return String(this.#ids);
  }

  #time(): string {
    return new Date(this.#now().wall).toISOString();
  }
}
