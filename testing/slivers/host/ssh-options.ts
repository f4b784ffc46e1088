/** Without a terminal, and only to hosts with a known key. */
export const SSH_OPTIONS = [
  "BatchMode=yes",
  "StrictHostKeyChecking=yes",
  "ConnectTimeout=120",
  "ServerAliveInterval=60",
  "ServerAliveCountMax=10",
  "LogLevel=ERROR",
].flatMap((option) => ["-o", option]);
