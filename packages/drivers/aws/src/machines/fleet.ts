import type { CreateFleetError, CreateFleetRequest } from "@aws-sdk/client-ec2";
import { type CreateOrder, DriverError, type LabelConfig, type Log } from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import { codeOf } from "../client/index.ts";
import type { AwsLabelOwn, AwsPoolOwn } from "../config.ts";
import { kindOfFault } from "../errors.ts";
import { type Resolved, tagSpecifications, tagsOf } from "./run-body.ts";
import { type Template, type Templates, templateOf } from "./templates.ts";

/**
 * Makes one machine by an instant fleet, for which EC2 chooses among the label's instance types. Returns the id of the instance.
 * `token`: a repeated call gets the same fleet. Rejects with a DriverError when no type could be launched.
 */
export async function runFleet(
  {
    account,
    templates,
    log,
  }: { readonly account: AwsAccount; readonly templates: Templates; readonly log: Log },
  order: CreateOrder,
  resolved: Resolved,
  token: string,
  signal: AbortSignal,
): Promise<string> {
  const label = order.label as LabelConfig<AwsLabelOwn>;
  const template = templateOf(label, order.pool.own as AwsPoolOwn, order.tag.provider, resolved.root.name);
  const body = fleetBody(order, resolved, template, token, log);
  // Twice at most: a missing template is made anew once. A second miss means that something deletes templates faster than they are used.
  for (let again = false; ; again = true) {
    await templates.ensure(template, signal);
    try {
      const { Instances, Errors } = await account.aws.ec2((ec2, to) => ec2.createFleet(body, to), signal);
      const id = Instances?.[0]?.InstanceIds?.[0];
      if (id !== undefined) return id;
      if (!Errors?.some(({ ErrorCode }) => isMissing(ErrorCode)) || again) throw fleetError(Errors ?? []);
    } catch (error) {
      if (again || !isMissing(codeOf(error))) throw error;
    }
    templates.forget(template);
  }
}

/** Whether EC2 does not know the template: as an error of the call, or as one in its answer. */
function isMissing(code: string | undefined): boolean {
  return code?.startsWith("InvalidLaunchTemplateName.NotFound") === true;
}

/** Body of CreateFleet: exactly one machine, at once or not at all ("instant"). */
function fleetBody(
  order: CreateOrder,
  { imageId, subnet, zone }: Resolved,
  template: Template,
  token: string,
  log: Pick<Log, "warn">,
): CreateFleetRequest {
  const { own } = order.label as LabelConfig<AwsLabelOwn>;
  const market = own.spot ? "spot" : "on-demand";
  // On demand, EC2 knows only `lowest-price` and `prioritized`, and refuses the others.
  const strategy = { AllocationStrategy: own.fleet?.allocationStrategy as never };
  const place = subnet !== null ? { SubnetId: subnet } : zone !== null ? { AvailabilityZone: zone } : {};
  return {
    Type: "instant",
    ClientToken: token,
    ...(own.spot ? { SpotOptions: strategy } : { OnDemandOptions: strategy }),
    TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: market },
    LaunchTemplateConfigs: [
      {
        LaunchTemplateSpecification: { LaunchTemplateName: template.name, Version: "$Latest" },
        // The strategy `prioritized` follows the order of the file.
        Overrides: (own.fleet?.instanceTypes ?? []).map((type, Priority) => ({
          ImageId: imageId,
          InstanceType: type as never,
          Priority,
          ...place,
        })),
      },
    ],
    TagSpecifications: tagSpecifications(["instance", "volume"], tagsOf(order, log)),
  };
}

/** An instant fleet reports its errors in the answer, one for each type. Errors of capacity only mean that another zone may work. */
function fleetError(errors: readonly CreateFleetError[]): DriverError {
  const faults = errors.map(({ ErrorCode: code = "Unknown", ErrorMessage: message = "" }) => ({
    code,
    message,
    kind: kindOfFault({ code, message, status: 400 }),
  }));
  const said = [...new Set(faults.map(({ code, message }) => `${message.trim()} (${code})`))].join("; ");
  // The kind that leaves the most hope counts: if one type failed for capacity, another zone may have it, whatever the other types said.
  const rank = ["capacity", "quota", "transient", "access", "unsupported", "configuration"] as const;
  const kind = rank.find((one) => faults.some((fault) => fault.kind === one)) ?? "fatal";
  return new DriverError(
    faults.length === 0 ? "transient" : kind,
    `the fleet made no machine: ${said || "no reason is given"}`,
  );
}
