# A static binary, no shell, no root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X highwater/sidecar/app.Version=$VERSION" -o /highwater ./sidecar

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /highwater /highwater
USER 65532:65532
ENV HIGHWATER_HTTP_ADDR=0.0.0.0:8321
EXPOSE 8321
ENTRYPOINT ["/highwater"]
CMD ["serve"]
