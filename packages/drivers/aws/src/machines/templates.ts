import { createHash } from "node:crypto";
import type { RequestLaunchTemplateData, TagSpecification } from "@aws-sdk/client-ec2";
import type { LabelConfig, PoolConfig } from "@nodeyard/driver";
import { type Aws, allPages, codeOf } from "../client/index.ts";
import type { AwsLabelOwn, AwsPoolOwn, AwsProviderConfig } from "../config.ts";
import { metadataOf, tagListOf } from "../tags.ts";
import { base64, metadataOptions, volumeOptions } from "./run-body.ts";

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
  readonly tags: TagSpecification[];
}

/** The launch template of a fleet label for AMIs with this root device. */
export function templateOf(
  label: LabelConfig<AwsLabelOwn>,
  pool: AwsPoolOwn,
  provider: string,
  root = ROOT,
): Template {
  const { own } = label;
  const data: RequestLaunchTemplateData = {
    ...(own.keyName !== null && { KeyName: own.keyName }),
    ...networkOf(pool),
    // A template needs the name of the root device; with another one EC2 would add a second volume.
    BlockDeviceMappings: [{ DeviceName: root, Ebs: { DeleteOnTermination: true, ...volumeOptions(own) } }],
    ...(own.imdsv2 !== null && { MetadataOptions: metadataOptions(own.imdsv2) }),
    ...(own.userData !== null && { UserData: base64(own.userData) }),
    ...(own.ebsOptimized && { EbsOptimized: true }),
    ...(own.profile?.name != null && { IamInstanceProfile: { Name: own.profile.name } }),
    ...(own.profile?.arn != null && { IamInstanceProfile: { Arn: own.profile.arn } }),
  };
  const Tags = tagListOf({ nodepool_managed: "True", [PROVIDER]: provider });
  const tags: TagSpecification[] = [{ ResourceType: "launch-template", Tags }];
  // The name is Nodepool's, so that both programs find the same template.
  const text = pythonJson({ LaunchTemplateData: data, TagSpecifications: tags });
  return { name: PREFIX + createHash("sha256").update(text).digest("hex"), data, tags };
}

/** With public IPv4 only, the subnet's setting decides, as in Nodepool. Other settings need a network interface in the template. */
function networkOf({ securityGroup, publicIpv4, publicIpv6 }: AwsPoolOwn): RequestLaunchTemplateData {
  const groups = securityGroup === null ? [] : [securityGroup];
  if (publicIpv4 && !publicIpv6) return groups.length === 0 ? {} : { SecurityGroupIds: groups };
  const address = { AssociatePublicIpAddress: publicIpv4, ...(publicIpv6 && { Ipv6AddressCount: 1 }) };
  return {
    NetworkInterfaces: [{ DeviceIndex: 0, ...address, ...(groups.length > 0 && { Groups: groups }) }],
  };
}

/** JSON exactly as Python's `json.dumps(value, sort_keys=True)` writes it: Nodepool hashes that text. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
    const sorted = entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${sorted.map(([key, inner]) => `${pythonJson(key)}: ${pythonJson(inner)}`).join(", ")}}`;
  }
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}

/** Launch templates of a provider's fleets. They are made when the provider opens, or when first needed. */
export class Templates {
  readonly #aws: Aws;
  readonly #config: AwsProviderConfig;
  readonly #installation: string;
  /** Names of templates that exist, as far as this process knows. */
  readonly #made = new Set<string>();

  constructor(aws: Aws, config: AwsProviderConfig, installation: string) {
    this.#aws = aws;
    this.#config = config;
    this.#installation = installation;
  }

  /**
   * Makes the template unless it exists. Two launchers may do so at once: EC2 refuses the second, and the templates are equal by
   * their names.
   */
  async ensure(template: Template, signal: AbortSignal): Promise<void> {
    if (this.#made.has(template.name)) return;
    const own = tagListOf({ [INSTALLATION]: this.#installation });
    const request = {
      LaunchTemplateName: template.name,
      LaunchTemplateData: template.data,
      TagSpecifications: template.tags.map((one) => ({ ...one, Tags: [...(one.Tags ?? []), ...own] })),
    };
    try {
      await this.#aws.ec2((ec2, to) => ec2.createLaunchTemplate(request, to), signal);
    } catch (error) {
      if (codeOf(error) !== "InvalidLaunchTemplateName.AlreadyExistsException") throw error;
    }
    this.#made.add(template.name);
  }

  /** To be called when a launch did not find the template: a launcher with another configuration may have deleted it. */
  forget({ name }: Template): void {
    this.#made.delete(name);
  }

  /**
   * Makes missing templates of the configuration and deletes those that this provider of this installation made for earlier configurations.
   * `rootOf`: root device of a label's AMI. Undefined: not known yet; the next launch makes the template.
   */
  async reconcile(
    rootOf: (label: LabelConfig<AwsLabelOwn>) => Promise<string | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    const needed = new Map<string, Template>();
    for (const [label, pool] of fleetsOf(this.#config)) {
      const template = templateOf(label, pool, this.#config.name, await rootOf(label));
      needed.set(template.name, template);
    }
    for (const { LaunchTemplateName: name = "", Tags } of await this.#list(signal)) {
      if (needed.has(name)) this.#made.add(name);
      const tags = metadataOf(Tags);
      const isOurs = tags[INSTALLATION] === this.#installation && tags[PROVIDER] === this.#config.name;
      if (needed.has(name) || !isOurs || !name.startsWith(PREFIX)) continue;
      try {
        await this.#aws.ec2((ec2, to) => ec2.deleteLaunchTemplate({ LaunchTemplateName: name }, to), signal);
      } catch (error) {
        if (!codeOf(error).startsWith("InvalidLaunchTemplateName.NotFound")) throw error;
      }
    }
    for (const template of needed.values()) await this.ensure(template, signal);
  }

  /** All templates with our prefix, also Nodepool's. */
  #list(signal: AbortSignal) {
    const Filters = [{ Name: "launch-template-name", Values: [`${PREFIX}*`] }];
    return allPages(
      (token) => this.#aws.ec2((ec2, to) => ec2.describeLaunchTemplates({ Filters, ...token }, to), signal),
      ({ LaunchTemplates }) => LaunchTemplates,
    );
  }
}

/** The labels with a fleet, with the settings of their pools. */
function fleetsOf(config: AwsProviderConfig): readonly [LabelConfig<AwsLabelOwn>, AwsPoolOwn][] {
  const pools: readonly PoolConfig<AwsPoolOwn, AwsLabelOwn>[] = config.pools;
  return pools.flatMap(({ labels, own }) =>
    [...labels.values()].flatMap((label): [LabelConfig<AwsLabelOwn>, AwsPoolOwn][] =>
      label.own.fleet === null ? [] : [[label, own]],
    ),
  );
}
