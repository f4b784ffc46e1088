import { createHash } from "node:crypto";
import type { RequestLaunchTemplateData } from "@aws-sdk/client-ec2";
import { type LabelConfig, type Log, type Metadata, messageOf, unlessRefused } from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsLabelOwn, AwsPoolOwn, AwsProviderConfig } from "../config.ts";
import { metadataOf, tagSpecifications } from "../tags.ts";
import { commonBody, interfaceOf, volumeOptions } from "./bodies.ts";

/** Start of the names, as in Nodepool. */
const PREFIX = "nodepool-launch-template-";
/** Root device name of AMIs that this driver registers, and of most others. */
const ROOT = "/dev/sda1";
/** Tags of a template. Nodepool writes the first; templates without the second are not ours, and are never deleted. */
const PROVIDER = "nodepool_provider_name";
const INSTALLATION = "nodeyard_installation";

/** Launch template: the common settings of a fleet's machines. AMI, type and subnet are set per launch. */
export interface Template {
  /** Derived from the content, so that labels, launchers and restarts share a template. */
  readonly name: string;
  readonly data: RequestLaunchTemplateData;
  /** Part of the hashed text. The installation's tag is added when the template is made, so that it does not change the name. */
  readonly tags: Metadata;
}

/** The launch template of a fleet label for AMIs with this root device. */
export function templateOf(
  { own }: LabelConfig<AwsLabelOwn>,
  pool: AwsPoolOwn,
  provider: string,
  root = ROOT,
): Template {
  const data: RequestLaunchTemplateData = {
    ...networkOf(pool),
    // A template needs the name of the root device; with another one EC2 would add a second volume.
    BlockDeviceMappings: [{ DeviceName: root, Ebs: { DeleteOnTermination: true, ...volumeOptions(own) } }],
    ...commonBody(own),
    ...(own.ebsOptimized && { EbsOptimized: true }),
  };
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

export type Templates = ReturnType<typeof templatesOf>;

/** Launch templates of a provider's fleets. They are made when the provider opens, or when first needed. No I/O. */
export function templatesOf(
  { aws, lookups }: AwsAccount,
  { name: provider, pools }: AwsProviderConfig,
  installation: string,
  log: Log,
) {
  /** Names of templates that exist, as far as this process knows. */
  const made = new Set<string>();

  /** Root device of a label's AMI; undefined when the image cannot be looked up now. */
  const rootOf = async ({ name, own: { source } }: LabelConfig<AwsLabelOwn>, signal: AbortSignal) => {
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

  /**
   * Makes the template unless it exists. Two launchers may do so at once: EC2 refuses the second, and the templates are equal by
   * their names.
   */
  const ensure = async ({ name, data, tags }: Template, signal: AbortSignal) => {
    if (made.has(name)) return;
    const TagSpecifications = specifications({ ...tags, [INSTALLATION]: installation });
    const request = { LaunchTemplateName: name, LaunchTemplateData: data, TagSpecifications };
    const call = aws.call("ec2.createLaunchTemplate", request, signal);
    await unlessRefused(call, "InvalidLaunchTemplateName.AlreadyExistsException");
    made.add(name);
  };

  return {
    ensure,
    /** To be called when a launch did not find the template: a launcher with another configuration may have deleted it. */
    forget: ({ name }: Template) => void made.delete(name),
    /**
     * Makes missing templates of the configuration and deletes those that this provider of this installation made for earlier configurations.
     * A template whose root device is not known yet is made by the next launch.
     */
    async reconcile(signal: AbortSignal) {
      const needed = new Map<string, Template>();
      for (const { labels, own } of pools)
        for (const label of labels.values()) {
          if (label.own.fleet === null) continue;
          const template = templateOf(label, own, provider, await rootOf(label, signal));
          needed.set(template.name, template);
        }
      // Nodepool's are listed, too.
      const Filters = [{ Name: "launch-template-name", Values: [`${PREFIX}*`] }];
      const listed = await aws.list("ec2.describeLaunchTemplates", "LaunchTemplates", { Filters }, signal);
      for (const { LaunchTemplateName = "", Tags } of listed) {
        const tags = metadataOf(Tags);
        const isOurs = tags[INSTALLATION] === installation && tags[PROVIDER] === provider;
        if (needed.has(LaunchTemplateName)) made.add(LaunchTemplateName);
        else if (isOurs) await aws.maybe("ec2.deleteLaunchTemplate", { LaunchTemplateName }, signal);
      }
      for (const template of needed.values()) await ensure(template, signal);
    },
  };
}
