# Boots systemd as process 1 of its own namespaces. All its changes to /etc, /opt, /run and /var/lib
# end with the namespaces, so the host stays as it is.
#
#   unshare --fork --kill-child --pid --mount … sh boot.sh CHECKOUT SETTINGS
#
# CHECKOUT appears as /opt/offhook, and SETTINGS as /etc/offhook.
set -e
checkout=$1
settings=$2

mount -t tmpfs tmpfs /mnt
mkdir /mnt/etc /mnt/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work /etc
# The host's own units, mounts and start jobs must not start here.
rm -rf /etc/systemd/system/*
: > /etc/fstab
for wants in /lib/systemd/system/*.target.wants; do mount -t tmpfs tmpfs "$wants"; done

mount -t tmpfs tmpfs /opt
mkdir /opt/offhook /etc/offhook
mount --bind "$checkout" /opt/offhook
mount --bind "$settings" /etc/offhook
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t tmpfs -o mode=0755 tmpfs /var/lib
# systemd mounts the credentials in a namespace of its own, and this one has to see them. Nothing
# reaches the host, because all mounts were private at first.
mount --make-rshared /

useradd --system --home-dir /var/lib/offhook --shell /usr/sbin/nologin offhook
cp /opt/offhook/sip-config/offhook.service /etc/systemd/system/
# No journal runs here.
mkdir /etc/systemd/system/offhook.service.d
printf '[Service]\nStandardOutput=append:/etc/offhook/log\nStandardError=append:/etc/offhook/log\n' \
  > /etc/systemd/system/offhook.service.d/log.conf
exec env container=namespace /lib/systemd/systemd --system --unit=multi-user.target
