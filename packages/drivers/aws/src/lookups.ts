import type { Image, InstanceTypeInfo, Subnet } from "@aws-sdk/client-ec2";
import { type Clock, orThrow, SharedValues, unlessRefused } from "@nodeyard/driver";
import type { Aws } from "./client/aws.ts";
import type { ImageSource } from "./config.ts";

/** The list of subnets has their free addresses. */
const SUBNETS = { freshMs: 60_000, staleMs: 240_000 };
/** Types and AMIs never change. An error is not kept. */
const FOREVER = { freshMs: Number.POSITIVE_INFINITY };
/** A new AMI that filters find, or a new value of a parameter, is used within this time. */
const IMAGES = { freshMs: 300_000 };

export type Lookups = ReturnType<typeof lookupsOf>;
/** Root device of an AMI, whose settings a launch may change. */
export type RootDevice = Awaited<ReturnType<Lookups["root"]>>;

/** Facts of an account that seldom change. Concurrent callers share a call. A name that EC2 does not know rejects with `configuration`. */
export function lookupsOf(aws: Aws, clock: Clock) {
  /** Also for what others look up. */
  const known = new SharedValues(clock);

  const parameterImage = async (parameter: string, signal: AbortSignal) => {
    const call = aws.call("ssm.getParameter", { Name: parameter }, signal);
    const found = await unlessRefused(call, "ParameterNotFound");
    const value = found?.Parameter?.Value ?? "";
    // Public parameters of container services contain JSON with the id.
    const [id] = /\bami-[0-9a-f]+\b/.exec(value) ?? [];
    const why =
      found === undefined ? "is not there" : `holds ${JSON.stringify(value.slice(0, 80))}, and no AMI`;
    return orThrow(id, `parameter ${parameter} of Systems Manager ${why}; correct image-parameter`);
  };

  /** The newest available AMI that matches. All pages are read, because EC2 does not sort. */
  const newestImage = async (
    { filters, owners }: Extract<ImageSource, { readonly filters: unknown }>,
    signal: AbortSignal,
  ) => {
    const request = {
      Filters: filters.map(({ name, values }) => ({ Name: name, Values: [...values] })),
      ...(owners.length > 0 && { Owners: [...owners] }),
    };
    const images = await aws.list("ec2.describeImages", "Images", request, signal);
    // ISO 8601 in one form: texts sort like times.
    const date = ({ CreationDate = "" }: Image) => CreationDate;
    const [newest] = images
      // The newest may still be pending, or have failed.
      .filter(({ State = "available" }) => State === "available")
      .sort((a, b) => (date(a) < date(b) ? 1 : -1));
    const why = `no image matches image-filters ${JSON.stringify(filters)}; correct them`;
    return orThrow(newest?.ImageId, why);
  };

  return {
    known,

    /** Facts of an instance type. */
    type(name: string, signal: AbortSignal): Promise<InstanceTypeInfo> {
      const load = async (own: AbortSignal) => {
        const call = aws.call("ec2.describeInstanceTypes", { InstanceTypes: [name as never] }, own);
        const found = await unlessRefused(call, "InvalidInstanceType");
        const why = `EC2 has no instance type ${name} in this region; correct instance-type`;
        return orThrow(found?.InstanceTypes?.[0], why);
      };
      return known.get(`instance type ${name}`, { ...FOREVER, load }, signal);
    },

    /** The device by its name in the AMI ("/dev/sda1", "/dev/xvda"), with the AMI's settings of the root volume; null: it is no EBS volume. */
    root(image: string, signal: AbortSignal) {
      const load = async (own: AbortSignal) => {
        const { Images } = await aws.call("ec2.describeImages", { ImageIds: [image] }, own);
        const why = `there is no image ${image} in this region, or it is not shared with this account`;
        const { BlockDeviceMappings: all = [], RootDeviceName } = orThrow(Images?.[0], why);
        const root = all.find(({ DeviceName }) => DeviceName === RootDeviceName) ?? all[0];
        return { name: root?.DeviceName ?? RootDeviceName ?? "/dev/sda1", ebs: root?.Ebs ?? null };
      };
      return known.get(`root device of ${image}`, { ...FOREVER, load }, signal);
    },

    /** The AMI that a cloud image stands for. Each launch needs it. */
    async image(source: ImageSource, signal: AbortSignal): Promise<string> {
      if ("id" in source) return source.id;
      const load = (own: AbortSignal) =>
        "parameter" in source ? parameterImage(source.parameter, own) : newestImage(source, own);
      return known.get(`image ${JSON.stringify(source)}`, { ...IMAGES, load }, signal);
    },

    /** The named subnets; without names, the default subnets of the default VPC. */
    async subnets(names: readonly string[], signal: AbortSignal): Promise<readonly Subnet[]> {
      const load = (own: AbortSignal) => aws.list("ec2.describeSubnets", "Subnets", {}, own);
      const all = await known.get("list of subnets", { ...SUBNETS, load }, signal);
      if (names.length === 0) return all.filter(({ DefaultForAz }) => DefaultForAz === true);
      return names.map((name) => {
        const found = all.find(({ SubnetId }) => SubnetId === name);
        return orThrow(found, `there is no subnet ${name} in this region; correct subnet-id`);
      });
    },
  };
}
