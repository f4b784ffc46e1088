import type { BlockDeviceMapping, InstanceTypeInfo, Subnet } from "@aws-sdk/client-ec2";
import { type Clock, DriverError, SharedValue, SharedValues } from "@nodeyard/driver";
import { type Aws, allPages, codeOf } from "./client/index.ts";

/** Milliseconds that the list of subnets, with their free addresses, is used. */
const FRESH_MS = 60_000;
const STALE_MS = 240_000;
/** Types and AMIs never change. An error is not kept. */
const FOREVER = { freshMs: Number.POSITIVE_INFINITY, staleMs: Number.POSITIVE_INFINITY };

/** Root device of an AMI, whose settings a launch may change. */
export interface RootDevice {
  /** Name of the device in the AMI: "/dev/sda1", "/dev/xvda". */
  readonly name: string;
  /** The AMI's settings of the root volume; null when the root is no EBS volume. */
  readonly ebs: NonNullable<BlockDeviceMapping["Ebs"]> | null;
}

/** Facts of an account that seldom change: instance types, root devices, subnets. Concurrent callers share a call. */
export class Lookups {
  readonly #aws: Aws;
  readonly #types: SharedValues<InstanceTypeInfo>;
  readonly #roots: SharedValues<RootDevice>;
  readonly #subnets: SharedValue<readonly Subnet[]>;

  constructor(aws: Aws, clock: Clock) {
    this.#aws = aws;
    this.#types = new SharedValues(clock);
    this.#roots = new SharedValues(clock);
    this.#subnets = new SharedValue({
      clock,
      what: "list of subnets",
      freshMs: FRESH_MS,
      staleMs: STALE_MS,
      load: (signal) =>
        allPages(
          (token) => aws.ec2((ec2, to) => ec2.describeSubnets({ ...token }, to), signal),
          ({ Subnets }) => Subnets,
        ),
    });
  }

  /** Facts of an instance type. Rejects with `configuration` when EC2 does not know it. */
  type(name: string, signal: AbortSignal): Promise<InstanceTypeInfo> {
    const load = async (own: AbortSignal) => {
      try {
        const { InstanceTypes } = await this.#aws.ec2(
          (ec2, to) => ec2.describeInstanceTypes({ InstanceTypes: [name as never] }, to),
          own,
        );
        const found = InstanceTypes?.[0];
        if (found !== undefined) return found;
      } catch (error) {
        if (codeOf(error) !== "InvalidInstanceType") throw error;
      }
      throw new DriverError(
        "configuration",
        `EC2 has no instance type ${name} in this region; correct instance-type`,
      );
    };
    return this.#types.get(`instance type ${name}`, { ...FOREVER, load }, signal);
  }

  /** The root device of an AMI. Rejects with `configuration` when the AMI does not exist, or is not shared with this account. */
  root(image: string, signal: AbortSignal): Promise<RootDevice> {
    const load = async (own: AbortSignal): Promise<RootDevice> => {
      const { Images } = await this.#aws.ec2((ec2, to) => ec2.describeImages({ ImageIds: [image] }, to), own);
      const found = Images?.[0];
      if (found === undefined)
        throw new DriverError(
          "configuration",
          `there is no image ${image} in this region, or it is not shared with this account`,
        );
      const mappings = found.BlockDeviceMappings ?? [];
      const root = mappings.find(({ DeviceName }) => DeviceName === found.RootDeviceName) ?? mappings[0];
      return { name: root?.DeviceName ?? found.RootDeviceName ?? "/dev/sda1", ebs: root?.Ebs ?? null };
    };
    return this.#roots.get(`image ${image}`, { ...FOREVER, load }, signal);
  }

  /**
   * The named subnets; without names, the default subnets of the default VPC. Their free addresses are at most STALE_MS old.
   * Rejects with `configuration` for a name that does not exist.
   */
  async subnets(names: readonly string[], signal: AbortSignal): Promise<readonly Subnet[]> {
    const all = await this.#subnets.get(signal);
    if (names.length === 0) return all.filter(({ DefaultForAz }) => DefaultForAz === true);
    return names.map((name) => {
      const found = all.find(({ SubnetId }) => SubnetId === name);
      if (found === undefined)
        throw new DriverError(
          "configuration",
          `there is no subnet ${name} in this region; correct subnet-id`,
        );
      return found;
    });
  }

  /** Ends lookups in progress; their callers get an error. */
  close(): void {
    for (const shared of [this.#subnets, this.#types, this.#roots]) shared.close();
  }
}
