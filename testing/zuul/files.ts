import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Tags of each project that can be enqueued: t1, t2, ... */
export const TAGS = 40;
export const PROJECTS = ["alpha", "beta"] as const;

/** One pipeline of Zuul for each kind of job, so that what is enqueued says which job runs. */
export interface PipelineOf {
  /** Labels of its nodes. */
  readonly labels: readonly string[];
  /** What runs on each of them, by a shell. */
  readonly command: string;
  readonly precedence?: "high" | "normal" | "low";
}

/** What a site of Zuul is made of, beside its tree. */
export interface Settings {
  readonly folder: string;
  readonly hosts: string;
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string };
  readonly database: number;
  readonly web: number;
  readonly finger: number;
  /** A virtual environment with Zuul. */
  readonly python: string;
  /** Where the interpreter of that environment is from. */
  readonly readable: string;
  readonly secret: string;
  readonly pipelines: Readonly<Record<string, PipelineOf>>;
  /** More objects of Zuul's configuration: providers, images, labels. */
  readonly objects: string;
  readonly nodepool: boolean;
}

/** Writes zuul.conf, the tenant's file and the projects. Returns the path of zuul.conf. */
export function writeZuul(settings: Settings): string {
  const { folder } = settings;
  for (const name of ["etc", "run", "lib", "jobs", "git"]) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "etc/main.yaml"), tenant(settings));
  writeFileSync(join(folder, "etc/logging.yaml"), LOGGING);
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", join(folder, "etc/id")]);
  writeConfigProject(settings);
  for (const project of PROJECTS) {
    const at = join(folder, "git", project);
    commit(at, { README: `${project}\n` });
    for (let tag = 1; tag <= TAGS; tag++) git(at, "tag", `t${tag}`);
  }
  const path = join(folder, "etc/zuul.conf");
  writeFileSync(path, configuration(settings), { mode: 0o600 });
  return path;
}

function tenant({ nodepool }: Settings): string {
  return `- tenant:
    name: t1
    use-nodepool: ${nodepool}
    source:
      local:
        config-projects:
          - config:
              include-provider-config: true
        untrusted-projects: [${PROJECTS.join(", ")}]
`;
}

function writeConfigProject({ folder, pipelines, objects }: Settings): void {
  const names = Object.keys(pipelines);
  const jobs = Object.entries(pipelines).map(([name, { labels, precedence }]) => {
    const nodes = labels.map((label, index) => `          - {name: n${index}, label: ${label}}\n`).join("");
    return `- pipeline:
    name: ${name}
    manager: independent
    precedence: ${precedence ?? "normal"}
    trigger:
      local: [{event: ref-updated, ref: ^refs/never$}]
- job:
    name: ${name}
    parent: base
    run: playbooks/${name}.yaml
    nodeset:
      nodes:
${nodes}`;
  });
  const zuul = `- job:
    name: base
    parent: null
    attempts: 1
    timeout: 300
    vars:
      zuul_console_disabled: true
      zuul_folder: ${folder}
${jobs.join("")}- project:
    name: ^(${PROJECTS.join("|")})$
${names.map((name) => `    ${name}: {jobs: [${name}]}\n`).join("")}${objects}`;
  const playbooks = Object.entries(pipelines).map(([name, { command }]) => [
    `playbooks/${name}.yaml`,
    JSON.stringify([{ hosts: "all", gather_facts: false, tasks: [{ raw: command }] }]),
  ]);
  commit(join(folder, "git/config"), { "zuul.yaml": zuul, ...Object.fromEntries(playbooks) });
}

/** Zuul's objects for labels of a provider on a connection that no launcher serves. */
export function providerLabels(...labels: readonly string[]): string {
  const each = (line: (label: string) => string) => labels.map((label) => `${line(label)}\n`).join("");
  return `- image: {name: any, type: cloud}
- flavor: {name: any}
${each((label) => `- label: {name: ${label}, image: any, flavor: any}`)}- section:
    name: nodeyard
    connection: nodeyard
    flavors: [{name: any}]
    images: [{name: any}]
- provider:
    name: nodeyard-main
    section: nodeyard
    labels:
${each((label) => `      - {name: ${label}, kind: namespace}`)}`;
}

/** Adds a commit with these files to the repository at `folder`, which it makes. */
export function commit(folder: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(folder, "playbooks"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  git(folder, "init", "--quiet", "--initial-branch=master");
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--allow-empty", "--message=a change");
}

export function git(folder: string, ...words: readonly string[]): string {
  const who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...who, "-C", folder, ...words], { encoding: "utf8" }).trim();
}

function configuration(settings: Settings): string {
  const { folder, hosts, tls, database, web, finger, python, readable, secret } = settings;
  const run = join(folder, "run");
  const lib = join(folder, "lib");
  const logging = join(folder, "etc/logging.yaml");
  const common = (name: string) => `command_socket=${run}/${name}.socket
state_dir=${lib}/${name}
log_config=${logging}`;
  for (const name of ["scheduler", "executor", "web", "launcher"]) mkdirSync(join(lib, name));
  return `[zookeeper]
hosts=${hosts}
tls_cert=${tls.cert}
tls_key=${tls.key}
tls_ca=${tls.ca}
session_timeout=20
[keystore]
password=secret
[database]
dburi=mysql+pymysql://root@127.0.0.1:${database}/zuul
[scheduler]
tenant_config=${folder}/etc/main.yaml
relative_priority=true
${common("scheduler")}
[merger]
git_dir=${lib}/merger
git_user_email=zuul@example.org
git_user_name=zuul
[executor]
${common("executor")}
ansible_root=${python}/ansible
ansible_setup_timeout=300
manage_ansible=false
private_key_file=${folder}/etc/id
job_dir=${folder}/jobs
git_dir=${lib}/executor-git
finger_port=${finger}
disk_limit_per_job=-1
load_multiplier=1000
min_avail_mem=0
trusted_ro_paths=${readable}
untrusted_ro_paths=${readable}
[web]
listen_address=127.0.0.1
port=${web}
${common("web")}
[launcher]
connection_filter=elsewhere
temp_dir=${run}
${common("launcher")}
[connection local]
driver=git
baseurl=file://${folder}/git
[connection nodeyard]
driver=kubernetes
[connection elsewhere]
driver=static
[auth operator]
driver=HS256
allow_authz_override=true
realm=zuul.example.org
client_id=zuul.example.org
issuer_id=operator
secret=${secret}
`;
}

const LOGGING = `version: 1
formatters:
  simple: {format: '%(asctime)s %(levelname)s %(name)s: %(message)s'}
handlers:
  console: {class: logging.StreamHandler, formatter: simple, stream: ext://sys.stderr}
loggers:
  zuul.AnsibleJob.output: {level: DEBUG}
root: {handlers: [console], level: INFO}
`;
