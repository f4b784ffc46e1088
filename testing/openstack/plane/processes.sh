# Sourced by up.sh: plain processes, each known by its number and its time of birth.
born() { sed -n 's/.*) //; s/^[^ZX] //p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f19; }   # start time; nothing for a dead one
alive() {   # alive NAME: does the process we started under that name still run?
  [ -s "$S/run/$1.pid" ] || return 1
  read -r _pid _start < "$S/run/$1.pid"
  [ "$(born "$_pid")" = "$_start" ]
}
start() {   # start NAME COMMAND...: own session, PID and start time in run/NAME.pid
  _n=$1; shift
  if alive "$_n"; then return 0; fi
  setsid "$@" >>"$S/log/$_n.log" 2>&1 </dev/null 9>&- &
  _p=$!
  printf '%s %s\n' "$_p" "$(born "$_p")" > "$S/run/$_n.pid"
}
port_open() { "$PY" -S -c 'import socket,sys
try: socket.create_connection(("127.0.0.1",int(sys.argv[1])),1).close()
except OSError: sys.exit(1)' "$1"; }
wait_for() {  # wait_for SECONDS WHAT COMMAND...
  _lim=$(($(date +%s) + $1)); _w=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$_lim" ] || die "timed out waiting for $_w (see $S/log)"
    sleep 0.2
  done
}

