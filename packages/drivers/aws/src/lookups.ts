import type { BlockDeviceMapping, Image, InstanceTypeInfo, Subnet } from "@aws-sdk/client-ec2";
import { type Clock, DriverError, type Resources, SharedValues } from "@nodeyard/driver";
import { type Aws, unless } from "./client/index.ts";
import type { ImageSource } from "./config.ts";
import { STORAGE_CODES } from "./quota/codes.ts";

/** The list of subnets has their free addresses. */
const SUBNETS = { freshMs: 60_000, staleMs: 240_000 };
/** Types and AMIs never change. An error is not kept. */
const FOREVER = { freshMs: Number.POSITIVE_INFINITY };
/** A new AMI that filters find, or a new value of a parameter, is used within this time. */
const IMAGES = { freshMs: 300_000 };
/** Quotas change rarely, by request. The launcher caches them too. */
const QUOTAS = { freshMs: 30_000 };
const GIB_PER_TIB = 1_024;

/** Root device of an AMI, whose settings a launch may change. */
export interface RootDevice {
  /** Name of the device in the AMI: "/dev/sda1", "/dev/xvda". */
  readonly name: string;
  /** The AMI's settings of the root volume; null when the root is no EBS volume. */
  readonly ebs: NonNullable<BlockDeviceMapping["Ebs"]> | null;
}

/**
 * Facts of an account that seldom change: instance types, images, subnets, quotas. Concurrent callers share a call. A name that EC2 does not
 * know rejects with `configuration`.
 */
export class Lookups {
  readonly #aws: Aws;
  /** Also for what others look up. */
  readonly known: SharedValues;

  constructor(aws: Aws, clock: Clock) {
    this.#aws = aws;
    this.known = new SharedValues(clock);
  }

  /** Facts of an instance type. */
  type(name: string, signal: AbortSignal): Promise<InstanceTypeInfo> {
    const load = async (own: AbortSignal) => {
      const found = await this.#aws
        .call("ec2.describeInstanceTypes", { InstanceTypes: [name as never] }, own)
        .catch(unless(/^InvalidInstanceType$/));
      return orMissing(
        found?.InstanceTypes?.[0],
        `EC2 has no instance type ${name} in this region; correct instance-type`,
      );
    };
    return this.known.get(`instance type ${name}`, { ...FOREVER, load }, signal);
  }

  /** The root device of an AMI. */
  root(image: string, signal: AbortSignal): Promise<RootDevice> {
    const load = async (own: AbortSignal): Promise<RootDevice> => {
      const { Images } = await this.#aws.call("ec2.describeImages", { ImageIds: [image] }, own);
      const { BlockDeviceMappings: all = [], RootDeviceName } = orMissing(
        Images?.[0],
        `there is no image ${image} in this region, or it is not shared with this account`,
      );
      const root = all.find(({ DeviceName }) => DeviceName === RootDeviceName) ?? all[0];
      return { name: root?.DeviceName ?? RootDeviceName ?? "/dev/sda1", ebs: root?.Ebs ?? null };
    };
    return this.known.get(`root device of ${image}`, { ...FOREVER, load }, signal);
  }

  /** The AMI that a cloud image stands for. Each launch needs it. */
  async image(source: ImageSource, signal: AbortSignal): Promise<string> {
    if ("id" in source) return source.id;
    const load = (own: AbortSignal) =>
      "parameter" in source ? this.#parameter(source.parameter, own) : this.#newest(source, own);
    return this.known.get(`image ${JSON.stringify(source)}`, { ...IMAGES, load }, signal);
  }

  /** The named subnets; without names, the default subnets of the default VPC. */
  async subnets(names: readonly string[], signal: AbortSignal): Promise<readonly Subnet[]> {
    const load = (own: AbortSignal) => this.#aws.list("ec2.describeSubnets", "Subnets", {}, own);
    const all = await this.known.get("list of subnets", { ...SUBNETS, load }, signal);
    if (names.length === 0) return all.filter(({ DefaultForAz }) => DefaultForAz === true);
    return names.map((name) =>
      orMissing(
        all.find(({ SubnetId }) => SubnetId === name),
        `there is no subnet ${name} in this region; correct subnet-id`,
      ),
    );
  }

  /**
   * Quotas with one of `codes`, as Service Quotas applies them: instances in vCPUs, storage in GiB. A code that is missing in the result is
   * not limited. Rejects with AccessDenied when the credential may not read them.
   */
  async quotas(codes: ReadonlySet<string>, signal: AbortSignal): Promise<Resources> {
    const load = async (own: AbortSignal) => {
      const list = (ServiceCode: string) =>
        this.#aws.list("quotas.listServiceQuotas", "Quotas", { ServiceCode }, own);
      return (await Promise.all([list("ec2"), list("ebs")])).flat();
    };
    const all = await this.known.get("list of service quotas", { ...QUOTAS, load }, signal);
    const limits: Record<string, number> = {};
    for (const { QuotaCode: code, Value: value } of all)
      if (code !== undefined && value !== undefined && codes.has(code))
        limits[code] = STORAGE_CODES.has(code) ? value * GIB_PER_TIB : value;
    return limits;
  }

  async #parameter(parameter: string, signal: AbortSignal): Promise<string> {
    const found = await this.#aws
      .call("ssm.getParameter", { Name: parameter }, signal)
      .catch(unless(/^ParameterNotFound$/));
    const value = found?.Parameter?.Value ?? "";
    // Public parameters of container services contain JSON with the id.
    const [id] = /\bami-[0-9a-f]+\b/.exec(value) ?? [];
    const why =
      found === undefined ? "is not there" : `holds ${JSON.stringify(value.slice(0, 80))}, and no AMI`;
    return orMissing(id, `parameter ${parameter} of Systems Manager ${why}; correct image-parameter`);
  }

  /** The newest available AMI that matches. All pages are read, because EC2 does not sort. */
  async #newest(
    { filters, owners }: Extract<ImageSource, { readonly filters: unknown }>,
    signal: AbortSignal,
  ): Promise<string> {
    const request = {
      Filters: filters.map(({ name, values }) => ({ Name: name, Values: [...values] })),
      ...(owners.length > 0 && { Owners: [...owners] }),
    };
    const images = await this.#aws.list("ec2.describeImages", "Images", request, signal);
    // ISO 8601 in one form: texts sort like times.
    const date = ({ CreationDate = "" }: Image) => CreationDate;
    const [newest] = images
      // The newest may still be pending, or have failed.
      .filter(({ State = "available" }) => State === "available")
      .sort((a, b) => (date(a) < date(b) ? 1 : -1));
    return orMissing(
      newest?.ImageId,
      `no image matches image-filters ${JSON.stringify(filters)}; correct them`,
    );
  }
}

function orMissing<T>(found: T | undefined, message: string): T {
  if (found === undefined) throw new DriverError("configuration", message);
  return found;
}
