#!/bin/sh
# Backs up PostgreSQL so that it can be restored to a moment: copies the WAL as the server writes
# it, and takes a base backup once a day. See "Back up" in sip-config/README.md.
#
#   run                           copies WAL until it is stopped (the service `backup`)
#   base                          takes a base backup now, e.g. before an upgrade
#   list                          prints the base backups, by the time at which each was complete
#   restore <moment>|latest       replaces the data folder, e.g. restore 2026-03-01T10:00:00Z
#   wal <chain> <file> <target>   fetches a WAL file (PostgreSQL's restore_command)
#
# The archive consists of chains. A chain is one base backup or more, and all WAL since the first of
# them. A new one begins if the WAL has a gap: after a restore, which begins a new timeline, and if
# this program was away for so long that the server has dropped the WAL that it kept for it.
set -eu
umask 077

archive=${ARCHIVE:-/archive}
slot=offhook_backup
# A base backup is taken once a day. The newest two of a chain are kept.
base_every_minutes=1440
# Older chains stay for this long after the newer one began, in case the restore was a mistake.
old_chain_days=2
# If the server is away for longer, its container may have been restarted. A restart of this one
# joins it again.
patience_s=60
tick_s=5

say() { echo "postgres-backup: $*" >&2; }
fail() { say "$@"; exit 1; }
ask() { psql -XAtq -c "$1"; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# Prints the newest chain, or nothing.
newest_chain() { find "$archive" -maxdepth 1 -name 'chain-*' | sort | tail -n 1; }

# ── Backing up ──

# Prints the timeline that the server writes, and the state of the slot. Fails on a standby.
server_state() {
  ask "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ' ' || coalesce(
    (select wal_status from pg_replication_slots where slot_name = '$slot'), 'missing')"
}

# Prints the chain to continue. Begins a new one if the newest can't be continued.
current_chain() {
  state=$(server_state)
  timeline=${state% *}
  case $state in
    *lost)
      say 'the server has dropped WAL that was not copied yet'
      ask "select pg_drop_replication_slot('$slot')" >/dev/null
      state=missing ;;
  esac
  chain=$(newest_chain)
  case $state in
    *missing) ask "select pg_create_physical_replication_slot('$slot', true)" >/dev/null ;;
    *) if [ -n "$chain" ] && [ "$timeline" = "$(cat "$chain/timeline")" ]; then echo "$chain"; return; fi ;;
  esac
  chain="$archive/chain-$(now)"
  mkdir -p "$chain/wal" "$chain/base"
  echo "$timeline" >"$chain/timeline"
  say "begins ${chain##*/}"
  echo "$chain"
}

take_base() {
  chain=$1 checkpoint=$2
  work="$chain/unfinished-$$"
  # The backup needs the WAL from here on, at most.
  first_wal=$(ask 'select pg_walfile_name(pg_current_wal_insert_lsn())')
  # In the background, so that a signal ends it.
  pg_basebackup -D "$work" -Ft -z -X stream --checkpoint "$checkpoint" &
  base_backup=$!
  wait "$base_backup"
  echo "$first_wal" >"$work/first-wal"
  mv "$work" "$chain/base/$(now)"
  say 'took a base backup'
  forget_old "$chain"
}

forget_old() {
  chain=$1
  ls "$chain/base" | sort -r | tail -n +3 | while read -r old; do rm -rf "$chain/base/$old"; done
  pg_archivecleanup "$chain/wal" "$(cat "$chain/base/$(ls "$chain/base" | sort | head -n 1)/first-wal")"
  find "$archive" -maxdepth 1 -name 'chain-*' ! -path "$chain" | while read -r old; do
    if [ -z "$(find "$chain" -maxdepth 1 -name timeline -mtime -"$old_chain_days")" ]; then rm -rf "$old"; fi
  done
}

base_is_due() { [ -z "$(find "$1/base" -mindepth 1 -maxdepth 1 -mmin -"$base_every_minutes")" ]; }

run() {
  receiver='' base_backup='' away_s=0
  trap 'kill $receiver $base_backup 2>/dev/null || true; wait' EXIT
  trap 'exit 0' TERM INT
  rm -rf "$archive"/chain-*/unfinished-*
  while [ "$away_s" -lt "$patience_s" ]; do
    if server_state >/dev/null 2>&1; then
      away_s=0
      if [ -z "$receiver" ] || ! kill -0 "$receiver" 2>/dev/null; then
        chain=$(current_chain)
        pg_receivewal --slot "$slot" --synchronous --no-loop -D "$chain/wal" &
        receiver=$!
      fi
      # The first one is urgent. The others spread their writes over minutes.
      if [ -z "$(ls "$chain/base")" ]; then take_base "$chain" fast
      elif base_is_due "$chain"; then take_base "$chain" spread
      fi
    else
      away_s=$((away_s + tick_s))
    fi
    sleep "$tick_s" &
    wait $! || true
  done
  fail "the server has been away for $patience_s s"
}

# ── Restoring ──

bases() {
  find "$archive" -mindepth 3 -maxdepth 3 -path "$archive/chain-*/base/*" | while read -r base; do
    echo "${base##*/} $base"
  done | sort
}

# Fetches a WAL file. The last one of a chain is incomplete, and PostgreSQL stops where it ends.
# PostgreSQL finds out from the histories of all chains which number its new timeline may have.
wal() {
  chain=$1 file=$2 target=$3
  for found in "$chain/wal/$file" "$chain/wal/$file.partial"; do
    if [ -f "$found" ]; then cp "$found" "$target"; return; fi
  done
  case $file in
    *.history) cp "$archive"/chain-*/wal/"$file" "$target" 2>/dev/null ;;
    *) return 1 ;;
  esac
}

restore() {
  moment=$1
  case $moment in
    latest)
      until=9999
      set -- ;;
    [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z)
      until=$moment
      # PostgreSQL doesn't know Z here.
      set -- -c "recovery_target_time=${moment%Z}+00" ;;
    *) fail "the moment must be UTC, e.g. 2026-03-01T10:00:00Z, or latest" ;;
  esac
  [ ! -e "$PGDATA/postmaster.pid" ] || fail 'stop PostgreSQL first'
  base=$(bases | awk -v until="$until" '$1 <= until { print $2 }' | tail -n 1)
  [ -n "$base" ] || fail "no base backup was complete at $moment; these are: $(bases | cut -d' ' -f1 | tr '\n' ' ')"
  chain=${base%/base/*}
  for file in "$base"/*.tar.gz; do gzip -t "$file"; done
  say "uses the base backup of ${base##*/}"
  chmod 700 "$PGDATA"
  # Some find programs have no -delete.
  find "$PGDATA" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
  tar -xzf "$base/base.tar.gz" -C "$PGDATA"
  tar -xzf "$base/pg_wal.tar.gz" -C "$PGDATA/pg_wal"
  touch "$PGDATA/recovery.signal"
  # The settings are only for this start, which ends when the server has reached the moment. With
  # hot_standby, it would refuse a lower max_connections than the old server had.
  fetch="sh $0 wal $chain %f %p"
  postgres -D "$PGDATA" -c listen_addresses= -c unix_socket_directories=/tmp -c "restore_command=$fetch" \
    -c hot_standby=off -c recovery_target_timeline=current -c recovery_target_action=promote "$@" &
  server=$!
  until grep -qs '^ready' "$PGDATA/postmaster.pid"; do
    kill -0 "$server" 2>/dev/null || fail 'the restore failed, see above'
    sleep 1
  done
  kill -INT "$server"
  wait "$server" || true
  say "restored to $moment"
}

# PostgreSQL's image starts as root. A volume belongs to root when it is new.
if [ "$(id -u)" = 0 ]; then
  case ${1:-} in
    run) chown postgres "$archive" ;;
    restore) chown postgres "$PGDATA" ;;
  esac
  exec gosu postgres sh "$0" "$@"
fi

command=${1:-}
case $command in
  run) run ;;
  base) take_base "$(newest_chain)" fast ;;
  list) bases | cut -d' ' -f1 ;;
  restore) restore "${2:-}" ;;
  wal) wal "$2" "$3" "$4" ;;
  *) fail 'usage: run | base | list | restore <moment>|latest' ;;
esac
