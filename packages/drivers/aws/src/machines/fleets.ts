import { createHash } from "node:crypto";
import type { CreateFleetError, CreateFleetRequest, RequestLaunchTemplateData } from "@aws-sdk/client-ec2";
import {
  DriverError,
  launchedLabels,
  type Metadata,
  messageOf,
  present,
  unlessRefused,
} from "@nodeyard/driver";
import type { Site } from "../account.ts";
import type { AwsOrder, AwsPoolOwn } from "../config.ts";
import { kindOf } from "../errors.ts";
import { metadataOf, tagSpecifications } from "../tags.ts";
import { commonBody, interfaceOf, type Resolved, volumeOptions } from "./launch.ts";

/** Start of the names, as in Nodepool. */
const PREFIX = "nodepool-launch-template-";
/** Root device name of AMIs that this driver registers, and of most others. */
const ROOT = "/dev/sda1";
/** Tags of a template. Nodepool writes the first; templates without the second are not ours, and are never deleted. */
const PROVIDER = "nodepool_provider_name";
const INSTALLATION = "nodeyard_installation";
/** EC2 does not know the template: as an error of the call, or as one in its answer. */
const NO_TEMPLATE = /^InvalidLaunchTemplateName\.NotFound/;

/** Fleets of one machine, and their launch templates, which are made when the provider opens, or else by the first launch. */
export function fleetsOf({ aws, lookups, config, installation, log }: Site) {
  const { name: provider, pools } = config;

  /** Root device of a label's AMI; undefined when the image cannot be looked up now. */
  const rootOf = async ({ name, own: { source } }: AwsOrder["label"], signal: AbortSignal) => {
    // The AMI of an upload is known with an order only. AMIs of this driver have the default root device.
    if (source === null) return undefined;
    try {
      return (await lookups.root(await lookups.image(source, signal), signal)).name;
    } catch (error) {
      // The image of one label must not keep the provider from opening. Launches of that label report the error.
      log.warn({ label: name, error: messageOf(error) }, "cannot look an image up");
      return undefined;
    }
  };

  /** Two launchers may make a template at once: EC2 refuses the second, and the templates are equal by their names. */
  const make = async ({ name, data, tags }: ReturnType<typeof templateOf>, signal: AbortSignal) => {
    const TagSpecifications = specifications({ ...tags, [INSTALLATION]: installation });
    const request = { LaunchTemplateName: name, LaunchTemplateData: data, TagSpecifications };
    const call = aws.call("ec2.createLaunchTemplate", request, signal);
    await unlessRefused(call, "InvalidLaunchTemplateName.AlreadyExistsException");
  };

  return {
    /** Makes templates of the configuration, as far as root devices are known, and deletes those that this provider made for earlier ones. */
    async reconcile(signal: AbortSignal): Promise<void> {
      const needed = new Map<string, ReturnType<typeof templateOf>>();
      for (const pool of pools)
        for (const label of launchedLabels(pool)) {
          if (label.own.fleet === null) continue;
          const template = templateOf(label, pool.own, provider, await rootOf(label, signal));
          needed.set(template.name, template);
        }
      // Nodepool's are listed, too.
      const Filters = [{ Name: "launch-template-name", Values: [`${PREFIX}*`] }];
      const listed = await aws.list("ec2.describeLaunchTemplates", "LaunchTemplates", { Filters }, signal);
      for (const { LaunchTemplateName = "", Tags } of listed) {
        const tags = metadataOf(Tags);
        const isOurs = tags[INSTALLATION] === installation && tags[PROVIDER] === provider;
        const isNeeded = needed.delete(LaunchTemplateName);
        if (isOurs && !isNeeded) await aws.maybe("ec2.deleteLaunchTemplate", { LaunchTemplateName }, signal);
      }
      for (const template of needed.values()) await make(template, signal);
    },

    /** Makes one machine, whose type EC2 chooses. `token`: a repeated call gets the same fleet. Rejects when no type could be launched. */
    async run(order: AwsOrder, resolved: Resolved, token: string, signal: AbortSignal): Promise<string> {
      const template = templateOf(order.label, order.pool.own, provider, resolved.root.name);
      const body = fleetBody(order, resolved, template.name, token);
      const send = () => aws.call("ec2.createFleet", body, signal);
      let answer = await unlessRefused(send(), NO_TEMPLATE);
      const isMissing = ({ ErrorCode = "" }: CreateFleetError) => NO_TEMPLATE.test(ErrorCode);
      // A launcher with another configuration may have deleted it. A second miss means that something deletes templates faster than they
      // are used.
      if (answer === undefined || answer.Errors?.some(isMissing)) {
        await make(template, signal);
        answer = await send();
      }
      const id = answer.Instances?.[0]?.InstanceIds?.[0];
      if (id === undefined) throw fleetError(answer.Errors);
      return id;
    },
  };
}

/**
 * The launch template of a fleet label for AMIs with this root device: the common settings of a fleet's machines. AMI, type and subnet are set
 * per launch. The name follows from the content, so that labels, launchers and restarts share a template.
 */
export function templateOf({ own }: AwsOrder["label"], pool: AwsPoolOwn, provider: string, root = ROOT) {
  const data: RequestLaunchTemplateData = {
    ...networkOf(pool),
    // A template needs the name of the root device; with another one EC2 would add a second volume.
    BlockDeviceMappings: [{ DeviceName: root, Ebs: { DeleteOnTermination: true, ...volumeOptions(own) } }],
    ...commonBody(own),
    ...(own.ebsOptimized && { EbsOptimized: true }),
  };
  // The installation's tag is added when the template is made, so that it does not change the name.
  const tags = { nodepool_managed: "True", [PROVIDER]: provider };
  // The name is Nodepool's, so that both programs find the same template.
  const text = pythonJson({ LaunchTemplateData: data, TagSpecifications: specifications(tags) });
  return { name: PREFIX + createHash("sha256").update(text).digest("hex"), data, tags };
}

const specifications = (tags: Metadata) => tagSpecifications(["launch-template"], tags);

/** With public IPv4 only, the subnet's setting decides, as in Nodepool. Other settings need a network interface in the template. */
function networkOf(pool: AwsPoolOwn): RequestLaunchTemplateData {
  if (!pool.publicIpv4 || pool.publicIpv6) return { NetworkInterfaces: [interfaceOf(pool, null)] };
  return pool.securityGroup === null ? {} : { SecurityGroupIds: [pool.securityGroup] };
}

/** JSON exactly as Python's `json.dumps(value, sort_keys=True)` writes it: Nodepool hashes that text. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const sorted = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${sorted.map(([key, inner]) => `${pythonJson(key)}: ${pythonJson(inner)}`).join(", ")}}`;
  }
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}

/** Exactly one machine, at once or not at all ("instant"). */
function fleetBody(
  { label: { own }, az }: AwsOrder,
  { imageId, subnet, tags }: Resolved,
  LaunchTemplateName: string,
  ClientToken: string,
): CreateFleetRequest {
  // On demand, EC2 knows only `lowest-price` and `prioritized`, and refuses the others.
  const strategy = { AllocationStrategy: own.fleet?.allocationStrategy as never };
  const market = own.spot ? "spot" : "on-demand";
  const place = present({ SubnetId: subnet, AvailabilityZone: subnet === null ? az : null });
  return {
    ...{ Type: "instant", ClientToken },
    ...(own.spot ? { SpotOptions: strategy } : { OnDemandOptions: strategy }),
    TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: market },
    LaunchTemplateConfigs: [
      {
        LaunchTemplateSpecification: { LaunchTemplateName, Version: "$Latest" },
        // The strategy `prioritized` follows the order of the file.
        Overrides: (own.fleet?.instanceTypes ?? []).map((type, Priority) => ({
          ...{ ImageId: imageId, InstanceType: type as never, Priority, ...place },
        })),
      },
    ],
    TagSpecifications: tagSpecifications(["instance", "volume"], tags),
  };
}

/** An instant fleet reports its errors in the answer, one for each type. Errors of capacity only mean that another zone may work. */
function fleetError(errors: readonly CreateFleetError[] = []): DriverError {
  const faults = errors.map(({ ErrorCode: code = "Unknown", ErrorMessage: message = "" }) => ({
    text: `${message.trim()} (${code})`,
    kind: kindOf(code, message, 400),
  }));
  const said = [...new Set(faults.map(({ text }) => text))].join("; ") || "no reason is given";
  // The kind that leaves the most hope counts: if one type failed for capacity, another zone may have it, whatever the other types said.
  const rank = ["capacity", "quota", "transient", "access", "unsupported", "configuration"] as const;
  const none = faults.length === 0 ? "transient" : "fatal";
  const kind = rank.find((one) => faults.some((fault) => fault.kind === one)) ?? none;
  return new DriverError(kind, `the fleet made no machine: ${said}`);
}
