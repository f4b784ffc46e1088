import type { Instance, InstanceTypeInfo } from "@aws-sdk/client-ec2";
import { add, messageOf, type Resources, wasRefused } from "@nodeyard/driver";
import type { Site } from "./account.ts";
import type { AwsLabelOwn } from "./config.ts";

/**
 * Codes of Service Quotas (EC2 and EBS endpoints and quotas, "Service quotas"), and what counts against them: vCPUs of instances, storage in
 * GiB. A type that is missing here uses no quota; `max-resources` in the configuration can limit it. `cores` counts cores, as in Nodepool,
 * although the drivers of other clouds count threads.
 */

/** Codes without their "L-", by what is before the colon. */
function codesIn(text: string): ReadonlyMap<string, readonly string[]> {
  const rows = text.matchAll(/([\w-]+):([\w/]+)/g);
  return new Map(
    [...rows].map(([, name = "", codes = ""]) => [name, codes.split("/").map((code) => `L-${code}`)]),
  );
}

/** By instance family (letters before the first digit): quotas of vCPUs of running on-demand and spot instances. */
const FAMILIES = codesIn(`
  standard:1216C47A/34B43A08 dl:6E869C2A/85EED4F7 f:74FC7D96/88CF9481 g:DB2E81BA/3819A6DF
  vt:DB2E81BA/3819A6DF u-:43DA4232 inf:1945791B/B5D1601B p:417A185B/7212CCBC x:7295265B/E3A00192
  trn:2C3B7624/6B0D517C hpc:F7808C92
`);
/** These families share the quota `standard`. */
const STANDARD = /^[acdhimrtz]$/;

/** Quota code of an instance type; undefined when the table has none. */
function instanceCode(type: string, spot: boolean): string | undefined {
  const family = /^[a-z-]+/.exec(type)?.[0] ?? "";
  return FAMILIES.get(STANDARD.test(family) ? "standard" : family)?.[spot ? 1 : 0];
}

/** By volume type: quota of the storage of all volumes of that type in TiB, and quota of their IOPS if there is one. */
const VOLUMES = codesIn(`
  io1:FD252861/B3A130E6 io2:09BD8365/8D977E7E sc1:17AF77E8 gp2:D18FCD1D gp3:7A658B76 standard:9CF3C2EB st1:82ACEF56
`);

/** Codes whose unit is TiB. Amounts of this driver are in GiB. */
const STORAGE_CODES: ReadonlySet<string | undefined> = new Set(
  [...VOLUMES.values()].map(([storage]) => storage),
);
const GIB_PER_TIB = 1_024;
/** Quotas change rarely, by request. The launcher caches them too. */
const QUOTAS = { freshMs: 30_000 };

/** By the part of a type before the dot: quota of running dedicated hosts. */
const HOSTS = codesIn(`
  a1:949445B0 c3:8D142A2E c4:E4BF28E0 c5:81657574 c5a:03F01FD8 c5d:C93F66A2 c5n:20F13EBD c6a:D75D2E84
  c6g:A749B537 c6gd:545AED39 c6gn:5E3A299D c6i:5FA3355A c6id:1BBC5241 c6in:6C2C40CC c7a:698B67E5
  c7g:13B8FCE8 c7gd:EF58B059 c7gn:97677CE3 c7i:587AA6E3 d2:8B27377A dl1:AD667A3D f1:5C4CD236 g3:DE82EABA
  g3s:9675FDCD g4ad:FD8E9B9A g4dn:CAE24619 g5:A6E7FE5E g5g:4714FFEA g6:B88B9D6B gr6:E68C3AFF h1:84391ECC
  i2:6222C1B6 i3:8E60B0B1 i3en:77EE2B11 i4g:F62CBADB i4i:0300530D im4gn:93155D6F inf1:5480EFD2
  inf2:E5BCF7B5 is4gen:CB4F5825 m3:3C82F907 m4:EF30B25E m5:8B7BF662 m5a:B10F70D6 m5ad:74F41837
  m5d:8CCBD91B m5dn:DA07429F m5n:24D7D4AD m5zn:BD9BD803 m6a:80F2B67F m6g:D50A37FA m6gd:84FB37AA
  m6i:D269BEFD m6id:FDB0A352 m6idn:9721EDD9 m6in:D037CF10 m7a:4740F819 m7g:9126620E m7gd:F8516154
  m7i:30E31217 mac1:A8448DC5 mac2:5D8DADF5 mac2-m2:B90B5B66 mac2-m2pro:14F120D1 p2:2753CF59 p3:A0A19F79
  p3dn:B601B3B6 p4d:86A789C3 p5:5136197D r3:B7208018 r4:313524BA r5:EA4FD6CF r5a:8FE30D52 r5ad:EC7178B6
  r5b:A2D59C67 r5d:8814B54F r5dn:4AB14223 r5n:52EF324A r6a:BC1589C5 r6g:B6D6065D r6gd:EF284EFB
  r6i:F13A970A r6id:B89271A9 r6idn:C4EABC2C r6in:EA99608B r7a:4D15192B r7g:67B8B4C7 r7gd:01137DCE
  r7i:55E05032 r7iz:BC9FCC71 t3:1586174D trn1:5E4FB836 trn1n:39926A58 u-12tb1:D6994875 u-18tb1:5F7FD336
  u-24tb1:FACBE655 u-3tb1:7F5506AB u-6tb1:89870E8E u-9tb1:98E1FFAC u7in-16tb:75B9BECB u7in-24tb:CA51381E
  u7in-32tb:9D28191F vt1:A68CFBF7 x1:DE3D9563 x1e:DEF8E115 x2gd:5CC9EA82 x2idn:A84ABF80 x2iedn:D0AA08B1
  x2iezn:888B4496 z1d:F035E935
`);
/** Undefined when the table has none. */
const hostCode = (type: string) => HOSTS.get(type.split(".", 1)[0]!)?.[0];

/** An amount of a quota; none without a code, and none of what is absent. */
const used = (code: string | undefined, amount: number | null | undefined): Resources =>
  code === undefined || amount == null ? {} : { [code]: amount };

/** A running instance of a type. */
function instanceAmounts(info: InstanceTypeInfo, spot: boolean): Resources {
  const { DefaultVCpus = 0, DefaultCores = DefaultVCpus } = info.VCpuInfo ?? {};
  const ram = info.MemoryInfo?.SizeInMiB ?? 0;
  const code = instanceCode(info.InstanceType ?? "", spot);
  return { instances: 1, cores: DefaultCores, ram, ...used(code, DefaultVCpus) };
}

/** A dedicated host, whose only instance uses no quota besides. */
export function hostAmounts(type = ""): Resources {
  return used(hostCode(type), 1);
}

/** A volume's storage in GiB and its IOPS. What is absent is decided by the AMI. */
export function volumeAmounts(
  type: string | null | undefined,
  size: number | null | undefined,
  speed: number | null | undefined,
): Resources {
  const [storage, iops] = VOLUMES.get(type ?? "") ?? [];
  return { ...used(storage, size), ...used(iops, speed) };
}

/** One node of a label. `info` null: a fleet, whose type is known only after the launch. The root volume counts as far as the label sets it. */
export function labelAmounts(label: AwsLabelOwn, info: InstanceTypeInfo | null): Resources {
  const isAlone = info !== null && !label.dedicatedHost;
  const machine = isAlone
    ? instanceAmounts(info, label.spot)
    : { instances: 1, ...hostAmounts(info?.InstanceType) };
  return add(machine, volumeAmounts(label.volumeType, label.volumeSize, label.iops));
}

/** Quota codes that launches of a label may use. */
export function labelCodes({ instanceType, fleet, volumeType, ...label }: AwsLabelOwn): readonly string[] {
  const types = fleet?.instanceTypes ?? [instanceType ?? ""];
  const codes = types.map((type) => (label.dedicatedHost ? hostCode(type) : instanceCode(type, label.spot)));
  return [...codes, ...(VOLUMES.get(volumeType ?? "") ?? [])].filter((code) => code !== undefined);
}

/** A listed instance without its volumes and host. `info` undefined: of a type that is not known, it counts as one instance, as on a host. */
export function listedAmounts(instance: Instance, info: InstanceTypeInfo | undefined): Resources {
  if (info === undefined || instance.Placement?.HostId !== undefined) return { instances: 1 };
  return instanceAmounts(info, instance.InstanceLifecycle === "spot");
}

/**
 * Quotas with one of `codes`, as Service Quotas applies them: instances in vCPUs, storage in GiB. A code that is missing in the result is
 * not limited. None without the right to read them: EC2 refuses launches beyond them by itself, and Nodepool's policies lack the right.
 */
export async function quotasOf(
  { aws, lookups, config, log }: Site,
  codes: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Resources> {
  if (codes.size === 0) return {};
  const load = async (own: AbortSignal) => {
    const list = (ServiceCode: string) =>
      aws.list("quotas.listServiceQuotas", "Quotas", { ServiceCode }, own);
    return (await Promise.all([list("ec2"), list("ebs")])).flat();
  };
  const loaded = lookups.known.get("list of service quotas", { ...QUOTAS, load }, signal);
  const all = await loaded.catch((error) => {
    if (!wasRefused(error.cause, /^AccessDenied/)) throw error;
    const facts = { provider: config.name, error: messageOf(error) };
    log.warn(facts, "may not read service quotas; only the limits of the file count");
    return [];
  });
  const limits: Record<string, number> = {};
  for (const { QuotaCode: code, Value: value } of all)
    if (code !== undefined && value !== undefined && codes.has(code))
      limits[code] = STORAGE_CODES.has(code) ? value * GIB_PER_TIB : value;
  return limits;
}
