#!/usr/bin/env bash
# The S3 server of docker-compose's profile s3: SeaweedFS over a folder. Of its parts only the S3 port
# listens beyond this container. Options behind the folder are SeaweedFS's own.
#
#   store.sh FOLDER [OPTION...]
set -euo pipefail

for name in AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; do
    [[ -n ${!name:-} ]] || {
        echo "store: $name is not set; set it in .env, as .env.example says" >&2
        exit 1
    }
done
exec weed server -dir="$1" -ip=127.0.0.1 -ip.bind=127.0.0.1 -filer -s3 -s3.ip.bind=0.0.0.0 \
    -s3.iam=false -s3.port.iceberg=0 -s3.port.lance=0 -master.telemetry=false \
    -master.volumeSizeLimitMB=256 -volume.max=0 "${@:2}"
