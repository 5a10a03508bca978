"""Runs an S3 store that checks signatures (moto), with a folder's files in bucket "shards".

usage: s3_store.py FOLDER STATE

Writes its endpoint, an access key's id and the key's secret to STATE/store, one per line.
"""

import json
import os
import pathlib
import sys
import threading

folder, state = map(pathlib.Path, sys.argv[1:])
files = sorted(file for file in folder.iterdir() if file.is_file())
# moto checks credentials only after this number of calls, which are made below.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(4 + len(files))

import boto3  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
made_up = {
    "aws_access_key_id": "first",
    "aws_secret_access_key": "calls",
    "region_name": "us-east-1",
}
endpoint = f"http://127.0.0.1:{port}"
iam = boto3.client("iam", endpoint_url=endpoint, **made_up)
iam.create_user(UserName="trainer")
key = iam.create_access_key(UserName="trainer")["AccessKey"]
policy = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
    }
)
iam.put_user_policy(UserName="trainer", PolicyName="reads", PolicyDocument=policy)
s3 = boto3.client("s3", endpoint_url=endpoint, **made_up)
s3.create_bucket(Bucket="shards")
for file in files:
    s3.put_object(Bucket="shards", Key=f"of a/{file.name}", Body=file.read_bytes())
part = state / "store.part"
part.write_text("\n".join([endpoint, key["AccessKeyId"], key["SecretAccessKey"]]))
part.rename(state / "store")
threading.Event().wait()
