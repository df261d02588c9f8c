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
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib

useradd --system --home-dir /var/lib/offhook --shell /usr/sbin/nologin offhook
cp /opt/offhook/sip-config/offhook.service /etc/systemd/system/
exec env container=namespace /lib/systemd/systemd --system --unit=multi-user.target
